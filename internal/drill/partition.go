package drill

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/topology"
)

// probeInterval is how often an old master is asked whether it still takes writes.
const probeInterval = 50 * time.Millisecond

func partitionScenarios() []scenario {
	return []scenario{
		{
			category: journal.Partition, variant: "master", gated: true, expect: journal.Failover,
			title: "The master and the Sentinel on its machine are cut off from everybody else, the service too.",
			play: func(ctx context.Context, st *stage) error {
				return st.partition(ctx, "redis-0 and sentinel-0 are cut off", masterNode, masterMate)
			},
		},
		{
			category: journal.Partition, variant: "service", gated: true, expect: journal.Failover,
			title: "The service is left alone with the master and one Sentinel; the others fail over without it.",
			adapt: func(p *journal.Plan, _ Config) {
				p.Blackout, p.SplitBrain = true, minReplicasMaxLag+checkPeriod
				p.DecideWithin += reunion
			},
			play: func(ctx context.Context, st *stage) error {
				return st.partition(ctx, "redis-0, sentinel-0 and the service are cut off", masterNode, masterMate,
					topology.Clients)
			},
		},
		{
			category: journal.Partition, variant: "minority", gated: true, expect: journal.NoFailover,
			title: "A replica and the Sentinel on its machine are cut off: a minority, which must not fail over.",
			adapt: func(p *journal.Plan, _ Config) { p.Calm = true },
			play:  func(ctx context.Context, st *stage) error { return st.partitionMinority(ctx) },
		},
	}
}

// reunion is how long a service that was cut off may take to hear again from Sentinels on the other side: it looks at
// those that it has lost in intervals.
const reunion = 5 * time.Second

// partition cuts nodes off from all others, watches how their master stops taking writes, and heals the network.
func (st *stage) partition(ctx context.Context, what string, side ...string) error {
	network := st.set.Network()
	err := st.do(journal.Injected, what, func() error { return network.Isolate(side...) })
	if err != nil {
		return err
	}
	cut := st.rec.now()
	refused := make(chan journal.Moment, 1)
	go func() { refused <- st.awaitRefusal(ctx) }()
	st.awaitSwitch(ctx)
	st.checkRefusal(cut, <-refused)
	pause(ctx, st.cfg.Outage)
	st.checkMinority(cut, masterMate)
	return st.do(journal.Mended, "the network is whole again", network.Heal)
}

// awaitRefusal writes to the old master by a way that is not cut off, until it refuses for want of replicas.
func (st *stage) awaitRefusal(ctx context.Context) journal.Moment {
	ctx, cancel := context.WithTimeout(ctx, 2*(minReplicasMaxLag+checkPeriod))
	defer cancel()
	client := st.set.Node(st.master).Client()
	for ctx.Err() == nil {
		err := client.Set(ctx, "drill:probe", 1, time.Second).Err()
		if err != nil && strings.HasPrefix(err.Error(), "NOREPLICAS") {
			return journal.Seen(st.rec.now())
		}
		pause(ctx, probeInterval)
	}
	return journal.Moment{}
}

func (st *stage) checkRefusal(cut time.Duration, refused journal.Moment) {
	bound := minReplicasMaxLag + 2*checkPeriod
	took := refused.Since(journal.Seen(cut))
	st.rec.check(journal.Check{
		Name: "the old master stops taking writes (min-replicas-to-write)", Want: "within " + journal.Short(bound),
		Got: took.String(), Passed: took.Happened && took.At <= bound,
	})
}

// checkMinority looks whether a Sentinel that is cut off from the majority tried what it must not.
func (st *stage) checkMinority(since time.Duration, sentinels ...string) {
	c := journal.Check{
		Name: "the minority starts no failover", Want: "no attempt by " + strings.Join(sentinels, ", "), Got: "none",
		Passed: true,
	}
	st.rec.read(func(j *journal.Journal) {
		for _, e := range j.Events {
			forbidden := e.Name == journal.EventLeader || e.Name == journal.EventPromoted || e.Name == journal.EventSwitch
			for _, s := range sentinels {
				if forbidden && e.Source == s && e.At >= since {
					c.Passed, c.Got = false, fmt.Sprintf("%s at %s", e.Name, journal.Short(e.At))
				}
			}
		}
	})
	st.rec.check(c)
}

// partitionMinority cuts off a replica and its Sentinel, and waits for longer than a failover would take.
func (st *stage) partitionMinority(ctx context.Context) error {
	network := st.set.Network()
	err := st.do(journal.Injected, "redis-2 and sentinel-2 are cut off", func() error {
		return network.Isolate(lastReplica, lastMate)
	})
	if err != nil {
		return err
	}
	cut := st.rec.now()
	pause(ctx, max(3*st.cfg.DownAfter, st.cfg.Outage))
	st.checkMinority(cut, lastMate)
	st.checkVotes(cut, "CKQUORUM fails for the minority alone",
		map[string]bool{"sentinel-0": true, "sentinel-1": true, lastMate: false})
	return st.do(journal.Mended, "the network is whole again", network.Heal)
}

// checkVotes compares the newest votes since a moment.
func (st *stage) checkVotes(since time.Duration, name string, want map[string]bool) {
	got := st.rec.lastVotes(since)
	c := journal.Check{Name: name, Want: votesText(want), Passed: true}
	counted := map[string]bool{}
	for sentinel, ok := range want {
		counted[sentinel] = got[sentinel]
		c.Passed = c.Passed && got[sentinel] == ok
	}
	c.Got = votesText(counted)
	st.rec.check(c)
}

func votesText(votes map[string]bool) string {
	var words []string
	for _, sentinel := range []string{"sentinel-0", "sentinel-1", "sentinel-2"} {
		ok, asked := votes[sentinel]
		switch {
		case !asked:
		case ok:
			words = append(words, sentinel+" OK")
		default:
			words = append(words, sentinel+" NOQUORUM")
		}
	}
	return strings.Join(words, ", ")
}
