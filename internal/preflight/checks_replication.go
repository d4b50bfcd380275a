package preflight

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

func replicationChecks() []Check {
	return []Check{
		{
			ID: "role", Setups: everywhere, judge: judgeRole,
			Looks: "ROLE of the server that decisions would go to, and whether another calls itself master as well",
			Fails: "it is no master, or there are two",
			Remedy: "point --redis at the master; after a split, make the one that Sentinels do not name a replica again by " +
				"REPLICAOF",
		},
		{
			ID: "replicas", Setups: sentinels, judge: judgeReplicas,
			Looks:  "replicas whose link to the master is up",
			Warns:  "fewer than 2",
			Fails:  "none: nobody can take over",
			Remedy: "add replicas, on machines of their own",
		},
		{
			ID: "replication-link", Setups: redundant, judge: judgeLink,
			Looks:  "master_link_status and master_sync_in_progress of every replica",
			Warns:  "a full copy is under way",
			Fails:  "the link is down",
			Remedy: "look into the replica's log: masteruser and masterauth, the network, client-output-buffer-limit",
		},
		{
			ID: "replication-lag", Setups: redundant, judge: judgeLag,
			Looks: "when each replica last reported to its master, and how many bytes it is behind",
			Warns: fmt.Sprintf("more than %s, or more than %s", short(lagWarn), size(behindWarn)),
			Fails: fmt.Sprintf("more than %s", short(lagFail)),
			Remedy: "find what slows the replica or its network down: what it is behind is lost at a failover, and admitted " +
				"a second time",
		},
		{
			ID: "min-replicas", Setups: redundant, judge: judgeMinReplicas,
			Looks: "min-replicas-to-write and min-replicas-max-lag of every data node, against the healthy replicas",
			Warns: fmt.Sprintf("under Sentinels: 0 (an old master that is cut off goes on deciding), or a lag beyond %d s; "+
				"anywhere: as many as there are replicas (the loss of one stops every decision), or a lag below %d s",
				maxLagHigh, maxLagLow),
			Fails:  "more than there are: every decision fails with NOREPLICAS now",
			Remedy: "with two replicas min-replicas-to-write 1 and min-replicas-max-lag 3; with one, 0; on every data node",
		},
		{
			ID: "replica-read-only", Setups: redundant, judge: judgeReadOnly,
			Looks:  "replica-read-only of every data node",
			Fails:  "no: an old master that was made a replica goes on deciding, alone and unnoticed",
			Remedy: "CONFIG SET replica-read-only yes, and the same in redis.conf",
		},
		{
			ID: "replica-hosts", Setups: redundant, judge: judgeReplicaHosts,
			Looks:  "whether each master has a replica on another machine",
			Warns:  "one has none: a machine takes both",
			Remedy: "move a replica to another machine",
		},
	}
}

func judgeRole(f *facts, v *verdict) {
	if f.setup == Cluster {
		judgeClusterRoles(f, v)
		return
	}
	n := f.node(f.master)
	switch {
	case n == nil:
		v.fail("", "nobody names a master")
		return
	case n.err != "":
		v.fail(n.address, "the master cannot be asked")
		return
	case n.leads():
		v.pass("%s is the master", n.address)
	case cmpRole(n) == "":
		v.skip(n.address, "%s", n.missing[partRole])
	default:
		v.fail(n.address, "is a %s", cmpRole(n))
	}
	for _, other := range f.masters() {
		if other != n {
			v.fail(other.address, "calls itself master as well as %s", n.address)
		}
	}
}

func judgeClusterRoles(f *facts, v *verdict) {
	for _, g := range f.groups() {
		switch {
		case g.master == nil:
			v.fail(g.address, "a master that cannot be asked")
		case !g.master.leads():
			v.fail(g.address, "the Cluster calls it a master, and it calls itself %s", cmpRole(g.master))
		default:
			v.pass("%s", count(len(f.groups()), "master"))
		}
	}
}

// cmpRole is the role of a node as far as it is known.
func cmpRole(n *node) string {
	if n.role != "" {
		return n.role
	}
	return n.info["role"]
}

func judgeReplicas(f *facts, v *verdict) {
	for _, g := range f.groups() {
		healthy, unknown := f.healthyOf(g)
		switch {
		case healthy < 2 && unknown > 0:
			v.skip(g.address, "not permitted: the health of %s is not known", count(unknown, "replica"))
		case healthy == 0:
			v.fail(g.address, "has no healthy replica of %d", len(g.replicas))
		case healthy == 1:
			v.warn(g.address, "has one healthy replica of %d: after one failover there is none", len(g.replicas))
		default:
			v.pass("%d healthy of %d", healthy, len(g.replicas))
		}
	}
}

func judgeLink(f *facts, v *verdict) {
	for _, n := range f.followers() {
		if !v.knows(&n.server, partInfo) {
			continue
		}
		switch {
		case n.info["master_sync_in_progress"] == "1":
			v.warn(n.address, "is copying everything from its master")
		case n.info["master_link_status"] != "up":
			v.fail(n.address, "has lost its master for %s",
				short(time.Duration(number(n.info, "master_link_down_since_seconds"))*time.Second))
		default:
			v.pass("every replica follows its master")
		}
	}
}

func judgeLag(f *facts, v *verdict) {
	for _, g := range f.groups() {
		if g.master == nil || !v.knows(&g.master.server, partInfo) {
			continue
		}
		for _, r := range reports(g.master.info) {
			switch {
			case r.lag > lagFail:
				v.fail(r.address, "last reported %s ago", short(r.lag))
			case r.lag > lagWarn:
				v.warn(r.address, "last reported %s ago", short(r.lag))
			case r.behind > behindWarn:
				v.warn(r.address, "is %s behind", size(r.behind))
			default:
				v.pass("every replica is up to date")
			}
		}
	}
}

// replicaReport is what a master knows of a replica.
type replicaReport struct {
	address string
	lag     time.Duration
	behind  int64
}

// reports reads slave0:ip=10.0.0.2,port=6379,state=online,offset=1,lag=0 and so on. Replicas that are still copying
// have no lag yet.
func reports(info map[string]string) []replicaReport {
	var all []replicaReport
	for i := 0; ; i++ {
		line, ok := info[fmt.Sprintf("slave%d", i)]
		if !ok {
			return all
		}
		fields := map[string]string{}
		for pair := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(pair, "=")
			fields[name] = value
		}
		if fields["state"] != "online" {
			continue
		}
		all = append(all, replicaReport{
			address: endpoint(fields),
			lag:     time.Duration(number(fields, "lag")) * time.Second,
			behind:  number(info, "master_repl_offset") - number(fields, "offset"),
		})
	}
}

func judgeMinReplicas(f *facts, v *verdict) {
	for _, g := range f.groups() {
		good, unknown := f.healthyOf(g)
		for _, n := range g.members() {
			if v.knows(&n.server, partConfig) {
				judgeWriteGuard(f, v, n, int64(good+unknown))
			}
		}
	}
}

// judgeWriteGuard judges what the node demands as a master, which it may be tomorrow if it is not today.
func judgeWriteGuard(f *facts, v *verdict, n *node, healthy int64) {
	least, lag := number(n.config, "min-replicas-to-write"), number(n.config, "min-replicas-max-lag")
	demands := "demands " + count(int(least), "replica")
	switch {
	case (least == 0 || lag == 0) && f.setup == Sentinel:
		v.warn(n.address, "as a master it goes on deciding without replicas: cut off from Sentinels, it admits every limit "+
			"a second time until it is found")
	case least == 0 || lag == 0:
		v.pass("0: a master that loses the majority of the Cluster stops by itself")
	case least > healthy:
		v.fail(n.address, "%s and there are %d: as a master it refuses every decision", demands, healthy)
	case least == healthy:
		v.warn(n.address, "%s and there are no more: the loss of one stops every decision", demands)
	case lag < maxLagLow:
		v.warn(n.address, "counts a replica out after %d s, and replicas report once a second", lag)
	case lag > maxLagHigh:
		v.warn(n.address, "counts a replica out only after %d s: so long an old master goes on deciding", lag)
	default:
		v.pass("%d of %d: %s may be lost before decisions stop; a master that is cut off stops after %d s",
			least, healthy, count(int(healthy-least), "replica"), lag)
	}
}

func judgeReadOnly(f *facts, v *verdict) {
	for _, n := range f.alive() {
		switch {
		case !v.knows(&n.server, partConfig):
		case n.config["replica-read-only"] == "no":
			v.fail(n.address, "takes writes as a replica, and forgets them")
		default:
			v.pass("yes: a decision that is sent to a replica fails, and tells that the master has moved")
		}
	}
}

func judgeReplicaHosts(f *facts, v *verdict) {
	groups := f.groups()
	if len(groups) == 0 {
		skipViews(f, v)
	}
	for _, g := range groups {
		n := f.node(g.address)
		if n == nil || len(g.replicas) == 0 {
			continue
		}
		elsewhere := slices.ContainsFunc(g.replicas, func(r *node) bool { return r.host != n.host })
		if !elsewhere {
			v.warn(g.address, "all of its replicas are on its own machine, %s", n.host)
			continue
		}
		v.pass("every master has a replica elsewhere")
	}
}
