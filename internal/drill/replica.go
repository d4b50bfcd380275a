package drill

import (
	"context"
	"fmt"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/topology"
)

// trickle is what a slow replica receives, in bytes a second: far less than the writes of any load.
const trickle = 1500

// replicaScenarios run without min-replicas-to-write: with two of three nodes away, the last would refuse to write, and
// it is to be seen which one that is.
func replicaScenarios() []scenario {
	return []scenario{
		{
			category: journal.ReplicaLag, variant: "freeze", expect: journal.Failover, minReplicas: topology.None,
			title: "The master is killed while one replica is frozen: that replica must not be promoted.",
			play: func(ctx context.Context, st *stage) error {
				err := st.do(journal.Prepared, "redis-1 is frozen", st.set.Node(firstReplica).Freeze)
				if err != nil {
					return err
				}
				pause(ctx, 2*st.cfg.DownAfter) // Sentinels know by then
				if err := st.loseMaster(ctx); err != nil {
					return err
				}
				return st.do(journal.Mended, "redis-1 goes on", st.set.Node(firstReplica).Thaw)
			},
		},
		{
			category: journal.ReplicaLag, variant: "slow", gated: true, expect: journal.Failover,
			minReplicas: topology.None,
			title:       "The master is killed while one replica receives a trickle: the one that has more is promoted.",
			play: func(ctx context.Context, st *stage) error {
				network := st.set.Network()
				err := st.do(journal.Prepared, fmt.Sprintf("redis-1 receives %d bytes a second", trickle), func() error {
					return network.Throttle(firstReplica, trickle)
				})
				if err != nil {
					return err
				}
				pause(ctx, 2*st.cfg.DownAfter)
				if err := st.loseMaster(ctx); err != nil {
					return err
				}
				return st.do(journal.Mended, "redis-1 receives what it wants", func() error {
					return network.Throttle(firstReplica, 0)
				})
			},
		},
	}
}

// loseMaster kills the master, checks who takes its place, and starts it again.
func (st *stage) loseMaster(ctx context.Context) error {
	st.rec.act(journal.Prepared, st.behind())
	err := st.lose(ctx, "redis-0 is killed", (*topology.Node).Kill, masterNode)
	st.checkPromoted(lastReplica)
	return err
}

// behind says how far each replica is behind the master.
func (st *stage) behind() (text string) {
	text = "nobody looked at the replicas"
	st.rec.read(func(j *journal.Journal) {
		if len(j.Rounds) == 0 {
			return
		}
		nodes := j.Rounds[len(j.Rounds)-1].Nodes
		text = "behind the master:"
		for _, n := range nodes[1:] {
			if n.Error != "" {
				text += fmt.Sprintf(" %s %s", n.Name, n.Error)
				continue
			}
			text += fmt.Sprintf(" %s %d bytes", n.Name, nodes[0].Offset-n.Offset)
		}
	})
	return text
}

// checkPromoted compares the node that Sentinels promoted with the only one that was fit.
func (st *stage) checkPromoted(want string) {
	c := journal.Check{Name: "the replica that lags is not promoted", Want: want + " is", Got: "nobody was promoted"}
	st.rec.read(func(j *journal.Journal) {
		for _, e := range j.Events {
			if e.Name != journal.EventSwitch {
				continue
			}
			c.Got = "another was: " + e.Text
			if st.announces(e.Text, want) {
				c.Passed, c.Got = true, want+" was"
			}
			return
		}
	})
	st.rec.check(c)
}
