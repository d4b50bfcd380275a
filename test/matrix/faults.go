package main

import (
	"context"
	"slices"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill"
	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/topology"
)

// faults are the rows of the matrix, in the order of its tables.
func faults() []fault {
	return slices.Concat(processFaults(), networkFaults(), redisFaults(), topologyFaults())
}

// fresh is longer than a bucket that starts full again takes to be empty.
const fresh = 6 * time.Second

// processFaults are those of the master's process and of its machine.
func processFaults() []fault {
	return []fault{
		{
			id: "stall", name: "Redis stalls for 100 ms",
			done: "The master's process is stopped for 100 ms and goes on: a fork, a slow command, a noisy neighbour.",
			ends: "the thaw", cases: everywhere(variant{ending: outage, play: lastingFor(stall, freeze(master), thaw(master))}),
		},
		{
			id: "freeze", name: "Redis hangs",
			done: "The master's process is stopped: connections stay open, and nobody answers.",
			ends: "the thaw", cases: lasting(variant{}, freeze(master), thaw(master)),
		},
		{
			id: "kill", name: "Redis is killed",
			done:  "The master's process is killed, and started again later.",
			ends:  "it is started",
			cases: lasting(variant{emptied: true, after: fresh}, kill(master), start(master)),
		},
		{
			id: "stop", name: "Redis is told to stop",
			done: "The master ends in order, and is started again later.",
			ends: "it is started",
			cases: lasting(variant{emptied: true, after: fresh},
				each("redis-0 is told to stop", (*topology.Node).Stop, master), start(master)),
		},
		{
			id: "reboot", name: "Redis restarts at once, empty",
			done: "The master's process is killed and started again at once. Nothing is kept, so that it is empty; " +
				"where it has replicas, they copy that.",
			ends: "it is started",
			cases: map[drill.Topology]variant{
				drill.Standalone: {ending: outage, emptied: true, after: fresh, play: reboot},
				drill.Sentinel:   {ending: outage, emptied: true, after: fresh, play: reboot},
				drill.Cluster: {
					ending: outage, emptied: true, after: fresh,
					// One that starts as a master waits two seconds for news from the others, and answers CLUSTERDOWN meanwhile.
					ends: "it takes part again, 2 s after its start",
					play: untilVisible(kill(master), 0, start(master), takesPart),
				},
			},
		},
		{
			id: "machine", name: "the master's machine is lost",
			done: "The master and the Sentinel on its machine are killed at once.",
			cases: map[drill.Topology]variant{
				drill.Sentinel: {ending: failover, play: untilReplaced(kill(master, mate), start(master, mate))},
			},
		},
		{
			id: "machine-freeze", name: "the master's machine hangs",
			done: "The master and the Sentinel on its machine are stopped at once.",
			cases: map[drill.Topology]variant{
				drill.Sentinel: {ending: failover, play: untilReplaced(freeze(master, mate), thaw(master, mate))},
			},
		},
	}
}

func reboot(ctx context.Context, sc *drill.Scene) error {
	return lastingFor(0, kill(master), start(master))(ctx, sc)
}

// networkFaults are those between the service and Redis.
func networkFaults() []fault {
	return []fault{
		{
			id: "blackhole", name: "the network swallows everything",
			done: "The master is cut off from everybody, the service too: nothing arrives, and nothing is refused.",
			ends: "the network is whole again", cases: lasting(variant{gated: true}, cutOff(master), heal()),
		},
		{
			id: "slower", name: "answers take 5 to 10 ms longer",
			done: "What the master answers is held back by 5 to 10 ms: less than the budget.",
			cases: everywhere(variant{
				ending: unnoticed, gated: true, play: forAWhile(delay(master, 5*time.Millisecond), delay(master, 0)),
			}),
		},
		{
			id: "slow", name: "answers take 30 to 60 ms longer",
			done: "What the master answers is held back by 30 to 60 ms: more than the budget, too little for a failover.",
			ends: "they are fast again",
			cases: everywhere(variant{
				ending: outage, gated: true, play: forAWhile(delay(master, 30*time.Millisecond), delay(master, 0)),
			}),
		},
	}
}

// redisFaults are those in which Redis answers, but does not decide.
func redisFaults() []fault {
	return []fault{
		{
			id: "flush", name: "the script is flushed",
			done: "`SCRIPT FLUSH` on the master.",
			cases: everywhere(variant{
				ending: unnoticed,
				play:   lastingFor(0, tell("the script is flushed", master, "script flush"), nothing()),
			}),
		},
		{
			id: "oom", name: "Redis is out of memory",
			done: "`maxmemory` is below what is used, and `maxmemory-policy` is `noeviction`: every write is refused (OOM).",
			ends: "there is memory again",
			cases: everywhere(variant{ending: outage, play: forAWhile(
				tell("no memory is left", master, "config set maxmemory-policy noeviction", "config set maxmemory 1"),
				tell("there is memory again", master, "config set maxmemory 512mb", "config set maxmemory-policy volatile-ttl"),
			)}),
		},
		{
			id: "password", name: "the password is wrong",
			done: "The account of the service gets another password, and its connections are closed.",
			ends: "the old password is back",
			cases: map[drill.Topology]variant{
				drill.Standalone: {ending: outage, play: forAWhile(rotate(master), restore(master))},
				drill.Sentinel: {ending: outage, play: forAWhile(
					rotate(master, "redis-1", "redis-2"), restore(master, "redis-1", "redis-2"))},
				drill.Cluster: {ending: outage, play: forAWhile(
					rotate(master, clusterReplica), restore(master, clusterReplica))},
			},
		},
		{
			id: "readonly", name: "the master is demoted behind the service's back",
			done: "`REPLICAOF` on the master, of a server that does not exist: it answers READONLY. Sentinels replace it.",
			ends: "`REPLICAOF NO ONE`",
			cases: map[drill.Topology]variant{
				drill.Standalone: {ending: outage, play: forAWhile(
					demote(), tell("it is a master again", master, "replicaof no one"))},
				drill.Sentinel: {ending: failover, play: untilReplaced(demote(), nothing())},
			},
		},
		{
			id: "noreplicas", name: "too few replicas (`min-replicas-to-write`)",
			done: "All replicas of the master freeze. Once it misses them it answers NOREPLICAS; the fault counts from there.",
			ends: "the master counts them again",
			cases: map[drill.Topology]variant{
				drill.Sentinel: {ending: outage, play: prepared(freeze("redis-1", "redis-2"), replicasMissed,
					untilVisible(asSeen("the master misses them"), lasts, thaw("redis-1", "redis-2"), replicasCounted))},
				drill.Cluster: {ending: outage, minReplicas: 1, play: prepared(freeze(clusterReplica), replicasMissed,
					untilVisible(asSeen("the master misses it"), lasts, thaw(clusterReplica), replicasCounted))},
			},
		},
	}
}

func demote() step {
	return tell("redis-0 is made a replica of nobody", master, "replicaof 127.0.0.1 1")
}

// topologyFaults are those of Sentinels, replicas and slots.
func topologyFaults() []fault {
	return []fault{
		{
			id: "planned", name: "a planned failover",
			done: "`SENTINEL FAILOVER`, or `CLUSTER FAILOVER` at the replica.",
			cases: map[drill.Topology]variant{
				drill.Sentinel: {ending: failover, orderly: true, play: untilReplaced(
					tell("a failover is ordered", mate, "sentinel failover "+topology.MasterName), nothing())},
				drill.Cluster: {ending: failover, orderly: true, play: untilReplaced(
					tell("a failover is ordered", clusterReplica, "cluster failover"), nothing())},
			},
		},
		{
			id: "replica", name: "a replica is killed", done: "A replica of the master is killed, and started again.",
			cases: map[drill.Topology]variant{
				drill.Sentinel: {ending: unnoticed, play: forAWhile(kill("redis-2"), start("redis-2"))},
				drill.Cluster:  {ending: unnoticed, play: forAWhile(kill(clusterReplica), start(clusterReplica))},
			},
		},
		{
			id: "sentinels", name: "all Sentinels are lost",
			done: "All three Sentinels are killed, and started again. The master lives.",
			cases: map[drill.Topology]variant{drill.Sentinel: {ending: unnoticed, play: forAWhile(
				kill(sentinels...), start(sentinels...))}},
		},
		{
			id: "no-majority", name: "Redis hangs, and no majority is left",
			done:  "Two Sentinels are killed, then the master freezes: nobody may replace it.",
			ends:  "the thaw",
			cases: map[drill.Topology]variant{drill.Sentinel: {ending: outage, play: withoutMajority}},
		},
		{
			id: "migrate", name: "a slot moves",
			done: "The slot of a busy bucket moves to another master, and is half moved for 2 s (ASK, then MOVED).",
			cases: map[drill.Topology]variant{drill.Cluster: {
				ending: unnoticed, play: func(ctx context.Context, sc *drill.Scene) error { return sc.Migrate(ctx) },
			}},
		},
		{
			id: "reshard", name: "200 slots move",
			done: "200 slots move to another master, one after the other, those of the busy buckets among them.",
			cases: map[drill.Topology]variant{drill.Cluster: {
				ending: unnoticed, play: func(ctx context.Context, sc *drill.Scene) error { return sc.Reshard(ctx) },
			}},
		},
	}
}

var sentinels = []string{"sentinel-0", "sentinel-1", "sentinel-2"}

func withoutMajority(ctx context.Context, sc *drill.Scene) error {
	if err := kill(sentinels[1:]...).take(ctx, sc, journal.Prepared); err != nil {
		return err
	}
	// Long enough for a majority, had there been one.
	err := lastingFor(2*lasts, freeze(master), thaw(master))(ctx, sc)
	if err != nil {
		return err
	}
	return start(sentinels[1:]...).take(ctx, sc, journal.Prepared)
}
