package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill"
	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/topology"
)

// The nodes that faults happen to. redis-0 is the master, in a Cluster that of the buckets that are asked for.
const (
	master         = "redis-0"
	mate           = "sentinel-0" // on the master's machine
	clusterReplica = "redis-3"    // of redis-0
	serviceAccount = "ratelimit"
)

const (
	// stall is the length of a short freeze, ten times what a decision may cost.
	stall = 100 * time.Millisecond
	// lasts is how long a fault lasts that nobody fails over from.
	lasts = 2 * time.Second
	// lingers is how long a fault lasts after another master was announced.
	lingers = time.Second
	// noticed is how long it may take until the loss of replicas shows at their master: min-replicas-max-lag is 3 s.
	noticed = 8 * time.Second
)

// step is one act on the topology, in words and in deed.
type step struct {
	what string
	do   func(context.Context, *drill.Scene) error
}

func (s step) take(ctx context.Context, sc *drill.Scene, kind journal.ActKind) error {
	return sc.Do(kind, s.what, func() error { return s.do(ctx, sc) })
}

// forAWhile begins, waits and ends.
func forAWhile(begin, end step) func(context.Context, *drill.Scene) error {
	return lastingFor(lasts, begin, end)
}

func lastingFor(d time.Duration, begin, end step) func(context.Context, *drill.Scene) error {
	return func(ctx context.Context, sc *drill.Scene) error {
		if err := begin.take(ctx, sc, journal.Injected); err != nil {
			return err
		}
		sc.Pause(ctx, d)
		return end.take(ctx, sc, journal.Mended)
	}
}

// untilReplaced begins, waits for another master, and ends.
func untilReplaced(begin, end step) func(context.Context, *drill.Scene) error {
	return func(ctx context.Context, sc *drill.Scene) error {
		if err := begin.take(ctx, sc, journal.Injected); err != nil {
			return err
		}
		sc.AwaitSwitch(ctx)
		sc.Pause(ctx, lingers)
		return end.take(ctx, sc, journal.Mended)
	}
}

// untilVisible begins, waits, ends, and is mended once that shows.
func untilVisible(
	begin step, d time.Duration, end step, visible func(context.Context, *drill.Scene) bool,
) func(context.Context, *drill.Scene) error {
	return func(ctx context.Context, sc *drill.Scene) error {
		if err := begin.take(ctx, sc, journal.Injected); err != nil {
			return err
		}
		sc.Pause(ctx, d)
		if err := end.take(ctx, sc, journal.Worsened); err != nil {
			return err
		}
		if !sc.Await(ctx, noticed, func() bool { return visible(ctx, sc) }) {
			return fmt.Errorf("matrix: after %v nothing had come of it: %s", noticed, end.what)
		}
		return asSeen("and that shows").take(ctx, sc, journal.Mended)
	}
}

// prepared takes a step, waits for what comes of it, and then plays the rest.
func prepared(
	first step, visible func(context.Context, *drill.Scene) bool, rest func(context.Context, *drill.Scene) error,
) func(context.Context, *drill.Scene) error {
	return func(ctx context.Context, sc *drill.Scene) error {
		if err := first.take(ctx, sc, journal.Prepared); err != nil {
			return err
		}
		if !sc.Await(ctx, noticed, func() bool { return visible(ctx, sc) }) {
			return fmt.Errorf("matrix: after %v nothing had come of it: %s", noticed, first.what)
		}
		return rest(ctx, sc)
	}
}

// nothing is for faults that are over as soon as they have begun.
func nothing() step { return asSeen("that was all") }

// asSeen only records that something has come about.
func asSeen(what string) step {
	return step{what, func(context.Context, *drill.Scene) error { return nil }}
}

// each does the same to nodes at the same time.
func each(what string, do func(*topology.Node) error, names ...string) step {
	return step{what, func(_ context.Context, sc *drill.Scene) error { return sc.Each(do, names...) }}
}

func freeze(names ...string) step {
	return each(strings.Join(names, ", ")+" freeze", (*topology.Node).Freeze, names...)
}

func thaw(names ...string) step {
	return each(strings.Join(names, ", ")+" go on", (*topology.Node).Thaw, names...)
}

func kill(names ...string) step {
	return each(strings.Join(names, ", ")+" are killed", (*topology.Node).Kill, names...)
}

// start also restarts what still runs; a data node comes back empty.
func start(names ...string) step {
	return step{strings.Join(names, ", ") + " are started", func(ctx context.Context, sc *drill.Scene) error {
		return sc.Each(func(n *topology.Node) error { return n.Restart(ctx) }, names...)
	}}
}

// tell sends commands to a node, by a way that no fault cuts off.
func tell(what, node string, commands ...string) step {
	return step{what, func(ctx context.Context, sc *drill.Scene) error {
		var errs []error
		for _, command := range commands {
			errs = append(errs, say(ctx, sc.Set().Node(node), strings.Fields(command)...))
		}
		return errors.Join(errs...)
	}}
}

func say(ctx context.Context, n *topology.Node, words ...string) error {
	args := make([]any, len(words))
	for i, w := range words {
		args[i] = w
	}
	if err := n.Client().Do(ctx, args...).Err(); err != nil {
		return fmt.Errorf("matrix: %s refuses %s: %w", n.Name(), words[0], err)
	}
	return nil
}

// rotate gives the service's account another password on the nodes, and ends its connections.
func rotate(nodes ...string) step {
	return step{
		"the account of the service has another password on " + strings.Join(nodes, ", "),
		func(ctx context.Context, sc *drill.Scene) error {
			return sc.Each(func(n *topology.Node) error {
				return errors.Join(
					say(ctx, n, "acl", "setuser", serviceAccount, "resetpass", ">another"),
					say(ctx, n, "client", "kill", "user", serviceAccount),
				)
			}, nodes...)
		},
	}
}

// restore gives it the old one again.
func restore(nodes ...string) step {
	return step{"it has the old password again", func(ctx context.Context, sc *drill.Scene) error {
		old := sc.Set().ServiceLogin().Password
		return sc.Each(func(n *topology.Node) error {
			return say(ctx, n, "acl", "setuser", serviceAccount, "resetpass", ">"+old)
		}, nodes...)
	}}
}

func cutOff(node string) step {
	return step{node + " is cut off", func(_ context.Context, sc *drill.Scene) error {
		return sc.Set().Network().Isolate(node)
	}}
}

func heal() step {
	return step{"the network is whole again", func(_ context.Context, sc *drill.Scene) error {
		return sc.Set().Network().Heal()
	}}
}

func delay(node string, d time.Duration) step {
	return step{fmt.Sprintf("what %s answers takes %v more", node, d), func(_ context.Context, sc *drill.Scene) error {
		return sc.Set().Network().Delay(node, d)
	}}
}

// takesPart is whether the master finds the Cluster whole.
func takesPart(ctx context.Context, sc *drill.Scene) bool {
	text, err := sc.Set().Node(master).Client().ClusterInfo(ctx).Result()
	return err == nil && strings.Contains(text, "cluster_state:ok")
}

// replicasMissed is whether the master counts too few replicas to take writes.
func replicasMissed(ctx context.Context, sc *drill.Scene) bool {
	good, known := goodReplicas(ctx, sc)
	return known && good == "0"
}

// replicasCounted is whether it counts any again.
func replicasCounted(ctx context.Context, sc *drill.Scene) bool {
	good, known := goodReplicas(ctx, sc)
	return known && good != "0"
}

func goodReplicas(ctx context.Context, sc *drill.Scene) (count string, known bool) {
	text, err := sc.Set().Node(master).Client().Info(ctx, "replication").Result()
	if err != nil {
		return "", false
	}
	_, rest, known := strings.Cut(text, "min_slaves_good_slaves:")
	count, _, _ = strings.Cut(rest, "\r")
	return count, known
}
