package preflight

import (
	"fmt"
	"strings"
)

func clusterChecks() []Check {
	return []Check{
		{
			ID: "slots", Setups: clusterOnly, judge: judgeSlots,
			Looks:  "whether every one of the 16384 slots has an owner that lives, and cluster_state at every node",
			Fails:  "slots without one, or a node whose cluster_state is not ok",
			Remedy: "redis-cli --cluster check HOST:PORT, then --cluster fix",
		},
		{
			ID: "views", Setups: clusterOnly, judge: judgeViews,
			Looks: "whether all nodes agree on the owners of slots and on the epoch, and know of the same nodes",
			Warns: "epochs or the number of nodes differ",
			Fails: "the owners differ",
			Remedy: "wait for a failover or a move to end; else look for a partition, or for nodes that were left behind " +
				"(CLUSTER FORGET)",
		},
		{
			ID: "migration", Setups: clusterOnly, judge: judgeMigration,
			Looks:  "slots that are on their way in or out",
			Warns:  "there is one: half of its buckets are elsewhere, and every other decision takes a detour",
			Remedy: "let the move end; if nobody moves it: redis-cli --cluster fix, or CLUSTER SETSLOT n STABLE",
		},
		{
			ID: "cluster-replicas", Setups: clusterOnly, judge: judgeClusterReplicas,
			Looks:  "healthy replicas of every master, and cluster-replica-no-failover",
			Fails:  "a master has none: its slots are lost with it",
			Remedy: "redis-cli --cluster add-node NEW HOST:PORT --cluster-slave --cluster-master-id ID",
		},
		{
			ID: "node-timeout", Setups: clusterOnly, judge: judgeNodeTimeout,
			Looks: "cluster-node-timeout at every node, against --budget and the slowest call that was measured",
			Warns: fmt.Sprintf("more than %s, or less than %s, or less than ten of the slowest calls",
				short(detectionWarn), short(detectionLow)),
			Fails: fmt.Sprintf("%s or more", short(detectionFail)),
			Remedy: "CONFIG SET cluster-node-timeout 3000 on every node, and the same in redis.conf: so long, and about 1 s " +
				"more, decisions on the slots of a dead master are made without the store",
		},
		{
			ID: "coverage", Setups: clusterOnly, judge: judgeCoverage,
			Looks:  "cluster-require-full-coverage at every node",
			Warns:  "yes: while one shard has no master, no shard decides",
			Fails:  "yes, and a master has no replica: the loss of one machine stops every decision for good",
			Remedy: "CONFIG SET cluster-require-full-coverage no on every node, and the same in redis.conf",
		},
		{
			ID: "master-hosts", Setups: clusterOnly, judge: judgeMasterHosts,
			Looks:  "how many masters the loss of one machine, that is one IP address, takes: the rest must be a majority",
			Warns:  "everything runs on this machine, which is a trial and no launch",
			Fails:  "half of them or more, or there are fewer than 3: no failover",
			Remedy: "spread the masters over three machines or more; CLUSTER FAILOVER at a replica moves a master",
		},
	}
}

func judgeSlots(f *facts, v *verdict) {
	peers := f.peers()
	if len(peers) == 0 {
		skipViews(f, v)
		return
	}
	orphans := 0
	for slot := range slots {
		if !owned(peers, slot) {
			orphans++
		}
	}
	if orphans > 0 {
		v.fail("", "%d of %d slots have no owner that lives", orphans, slots)
	}
	for _, n := range f.alive() {
		if !v.knows(&n.server, partState) {
			continue
		}
		if state := n.view.info["cluster_state"]; state != "ok" {
			v.fail(n.address, "cluster_state is %s: it answers CLUSTERDOWN", state)
		}
	}
	v.pass("all %d have an owner", slots)
}

func skipViews(f *facts, v *verdict) {
	for _, n := range f.alive() {
		v.knows(&n.server, partView)
	}
}

func owned(peers []peer, slot int) bool {
	for _, p := range peers {
		if p.owns(slot) {
			return !p.is("fail")
		}
	}
	return false
}

func judgeViews(f *facts, v *verdict) {
	owners, epochs, sizes := map[string]int{}, map[string]int{}, map[int]int{}
	for _, n := range f.alive() {
		if !v.knows(&n.server, partView) {
			continue
		}
		owners[n.view.owners()]++
		sizes[len(n.view.peers)]++
		v.pass("%s agree", count(len(f.alive()), "node"))
		if v.knows(&n.server, partState) {
			epochs[n.view.info["cluster_current_epoch"]]++
		}
	}
	if len(owners) > 1 {
		v.fail("", "there are %d opinions on who owns which slot", len(owners))
	}
	if len(epochs) > 1 {
		v.warn("", "there are %d opinions on the epoch", len(epochs))
	}
	if len(sizes) > 1 {
		v.warn("", "there are %d opinions on how many nodes there are", len(sizes))
	}
}

func judgeMigration(f *facts, v *verdict) {
	for _, n := range f.alive() {
		self, ok := n.view.self()
		switch {
		case !v.knows(&n.server, partView) || !ok:
		case len(self.moving) > 0:
			v.warn(n.address, "%s on the way in or out, such as %s", count(len(self.moving), "slot"), movingSlot(self.moving[0]))
		default:
			v.pass("none")
		}
	}
}

// movingSlot is the number in [93->-id] or [93-<-id].
func movingSlot(text string) string {
	slot, _, _ := strings.Cut(strings.Trim(text, "[]"), "-")
	return slot
}

func judgeClusterReplicas(f *facts, v *verdict) {
	for _, g := range f.groups() {
		willing, unknown := 0, 0
		for _, n := range g.replicas {
			switch healthy, known := f.follows(n); {
			case !known:
				unknown++
			case healthy && n.config["cluster-replica-no-failover"] != "yes":
				willing++
			}
		}
		switch {
		case willing > 0:
			v.pass("every master has one that could take over")
		case unknown > 0:
			v.skip(g.address, "not permitted: the health of %s is not known", count(unknown, "replica"))
		default:
			v.fail(g.address, "has no healthy replica that could take over, of %d", len(g.replicas))
		}
	}
}

func judgeNodeTimeout(f *facts, v *verdict) {
	for _, n := range f.alive() {
		if v.knows(&n.server, partConfig) {
			judgeDetection(f, v, n.address, milliseconds(n.config, "cluster-node-timeout"))
		}
	}
}

func judgeCoverage(f *facts, v *verdict) {
	bare := false
	for _, g := range f.groups() {
		healthy, unknown := f.healthyOf(g)
		bare = bare || healthy+unknown == 0
	}
	for _, n := range f.alive() {
		switch {
		case !v.knows(&n.server, partConfig):
		case n.config["cluster-require-full-coverage"] != "yes":
			v.pass("no: a dead shard stops nobody but itself")
		case bare:
			v.fail(n.address, "one dead shard stops all, and a master has no replica")
		default:
			v.warn(n.address, "one dead shard stops all until its replica is promoted")
		}
	}
}

func judgeMasterHosts(f *facts, v *verdict) {
	groups, on := f.groups(), map[string]int{}
	for _, g := range groups {
		if n := f.node(g.address); n != nil {
			on[n.host]++
		}
	}
	if len(groups) == 0 {
		skipViews(f, v)
		return
	}
	if len(groups) < 3 {
		v.fail("", "%s: the loss of one leaves no majority", count(len(groups), "master"))
	}
	v.pass("the loss of any machine leaves a majority of the %d masters", len(groups))
	for _, g := range groups {
		n := f.node(g.address)
		if n == nil || on[n.host] == 0 {
			continue
		}
		lost := on[n.host]
		on[n.host] = 0
		switch {
		case n.host == loopback:
			v.warn("", "%s run on this machine", count(lost, "master"))
		case len(groups)-lost < len(groups)/2+1:
			v.fail("", "the loss of machine %s takes %d of %d masters: no majority is left", n.host, lost, len(groups))
		}
	}
}
