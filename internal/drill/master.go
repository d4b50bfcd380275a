package drill

import (
	"context"
	"errors"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/topology"
)

// host is the machine that the first master is thought to share with the first Sentinel.
const (
	masterNode   = "redis-0"
	masterMate   = "sentinel-0"
	firstReplica = "redis-1"
	lastReplica  = "redis-2"
)

func masterScenarios() []scenario {
	return []scenario{
		{
			category: journal.MasterExit, variant: "stop", expect: journal.Failover,
			title: "The master is told to stop, and does so in order.",
			play: func(ctx context.Context, st *stage) error {
				return st.lose(ctx, "redis-0 is told to stop", (*topology.Node).Stop, masterNode)
			},
		},
		{
			category: journal.MasterCrash, variant: "kill", expect: journal.Failover,
			title: "The master and the Sentinel on its machine die at once.",
			play: func(ctx context.Context, st *stage) error {
				return st.lose(ctx, "redis-0 and sentinel-0 are killed", (*topology.Node).Kill, masterNode, masterMate)
			},
		},
		{
			category: journal.MasterCrash, variant: "freeze", expect: journal.Failover,
			title: "The master and the Sentinel on its machine freeze: connections stay open, and nobody answers.",
			play: func(ctx context.Context, st *stage) error {
				return st.freeze(ctx, "redis-0 and sentinel-0 are frozen", masterNode, masterMate)
			},
		},
	}
}

// lose takes nodes away, waits for another master, and starts them again.
func (st *stage) lose(ctx context.Context, what string, end func(*topology.Node) error, names ...string) error {
	if err := st.do(journal.Injected, what, func() error { return st.each(end, names) }); err != nil {
		return err
	}
	st.awaitSwitch(ctx)
	pause(ctx, st.cfg.Outage)
	return st.restart(ctx, names...)
}

// freeze stops nodes where they are, waits for another master, and lets them go on.
func (st *stage) freeze(ctx context.Context, what string, names ...string) error {
	err := st.do(journal.Injected, what, func() error {
		return st.each((*topology.Node).Freeze, names)
	})
	if err != nil {
		return err
	}
	st.awaitSwitch(ctx)
	pause(ctx, st.cfg.Outage)
	return st.do(journal.Mended, "what was frozen goes on", func() error { return st.each((*topology.Node).Thaw, names) })
}

// restart starts nodes that have ended.
func (st *stage) restart(ctx context.Context, names ...string) error {
	return st.do(journal.Mended, "what was lost is started again", func() error {
		return st.each(func(n *topology.Node) error { return n.Restart(ctx) }, names)
	})
}

// each does the same to nodes at the same time: a machine loses all of its processes at once.
func (st *stage) each(do func(*topology.Node) error, names []string) error {
	errs := make(chan error, len(names))
	for _, name := range names {
		go func() { errs <- do(st.set.Node(name)) }()
	}
	var all []error
	for range names {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// awaitSwitch waits for the first +switch-master since the fault. If none comes the marks will say so.
func (st *stage) awaitSwitch(ctx context.Context) {
	since := st.rec.fault()
	seen := st.await(ctx, st.cfg.promoteWithin(), func() bool { return st.rec.sawEvent(journal.EventSwitch, since) })
	if seen {
		st.say("another master is announced")
	} else {
		st.say("no other master was announced within %v", st.cfg.promoteWithin())
	}
}
