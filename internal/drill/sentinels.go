package drill

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/topology"
)

const (
	middleMate = "sentinel-1"
	lastMate   = "sentinel-2"
)

func sentinelScenarios() []scenario {
	return []scenario{
		{
			category: journal.SentinelLoss, variant: "two", expect: journal.NoFailover,
			title: "One Sentinel dies, then a second: no majority is left, and the master lives.",
			adapt: func(p *journal.Plan, _ Config) { p.Calm = true },
			play: func(ctx context.Context, st *stage) error {
				if err := st.loseSentinels(ctx); err != nil {
					return err
				}
				return st.reunite(ctx)
			},
		},
		{
			category: journal.SentinelLoss, variant: "master", expect: journal.NoFailover,
			title: "Two Sentinels die, and then the master freezes: nobody may replace it, the table decides.",
			adapt: func(p *journal.Plan, _ Config) { p.Blackout = true },
			play: func(ctx context.Context, st *stage) error {
				if err := st.loseSentinels(ctx); err != nil {
					return err
				}
				master := st.set.Node(masterNode)
				if err := st.do(journal.Worsened, "redis-0 is frozen", master.Freeze); err != nil {
					return err
				}
				pause(ctx, max(3*st.cfg.DownAfter, st.cfg.Outage))
				if err := st.do(journal.Worsened, "redis-0 goes on", master.Thaw); err != nil {
					return err
				}
				return st.reunite(ctx)
			},
		},
	}
}

// loseSentinels kills one Sentinel and then another, and looks what those that are left think of it.
func (st *stage) loseSentinels(ctx context.Context) error {
	kill := func(kind journal.ActKind, name string) error {
		return st.do(kind, name+" is killed", st.set.Node(name).Kill)
	}
	if err := kill(journal.Injected, lastMate); err != nil {
		return err
	}
	since := st.rec.now() + st.cfg.DownAfter
	pause(ctx, 2*st.cfg.DownAfter+voteInterval)
	st.checkVotes(since, "CKQUORUM holds with one Sentinel lost", map[string]bool{masterMate: true, middleMate: true})
	if err := kill(journal.Worsened, middleMate); err != nil {
		return err
	}
	since = st.rec.now()
	st.await(ctx, st.cfg.promoteWithin(), func() bool {
		ok, asked := st.rec.lastVotes(since)[masterMate]
		return asked && !ok
	})
	st.checkVotes(since, "CKQUORUM fails with two Sentinels lost", map[string]bool{masterMate: false})
	st.checkAlert(ctx)
	pause(ctx, max(2*st.cfg.DownAfter, st.cfg.Outage))
	return nil
}

// alert is what operators are alerted by, as the service exports it while no failover could be had.
const alert = "ratelimit_sentinel_quorum_ok 0"

// alertWithin is how soon the service must say so: it asks every five seconds.
const alertWithin = 10 * time.Second

func (st *stage) checkAlert(ctx context.Context) {
	c := journal.Check{Name: "the service raises the alert", Want: alert + " within " + journal.Short(alertWithin)}
	since := st.rec.now()
	c.Passed = st.await(ctx, alertWithin, func() bool {
		text, err := st.service.page(ctx, "/metrics")
		return err == nil && strings.Contains(string(text), alert)
	})
	c.Got = "it does not"
	if c.Passed {
		c.Got = "after " + journal.Short(st.rec.now()-since)
	}
	st.rec.check(c)
}

// reunite starts the Sentinels that were lost and waits until all of them could order a failover again.
func (st *stage) reunite(ctx context.Context) error {
	err := st.restart(ctx, lastMate, middleMate)
	since := st.rec.now()
	everyone := map[string]bool{masterMate: true, middleMate: true, lastMate: true}
	st.await(ctx, st.cfg.SettleWithin, func() bool { return maps.Equal(st.rec.lastVotes(since), everyone) })
	st.checkVotes(since, "CKQUORUM holds again", everyone)
	return err
}

// announces is whether the words of a +switch-master end with the node's address.
func (st *stage) announces(text, node string) bool {
	words := strings.Fields(text)
	if len(words) < 2 {
		return false
	}
	return strings.Join(words[len(words)-2:], ":") == st.set.Node(node).Addr()
}

// hurry makes the Sentinels look at their nodes more often than they would.
func hurry(ctx context.Context, sentinels []*topology.Node) error {
	for _, s := range sentinels {
		err := s.Client().Do(ctx, "sentinel", "debug", "info-period", time.Second.Milliseconds(),
			"publish-period", (time.Second / 2).Milliseconds()).Err()
		if err != nil {
			return fmt.Errorf("drill: %s: %w", s.Name(), err)
		}
	}
	return nil
}
