package preflight

import (
	"fmt"
	"time"
)

func failoverChecks() []Check {
	return []Check{
		{
			ID: "down-after", Setups: sentinels, judge: judgeDownAfter,
			Looks: "down-after-milliseconds at every Sentinel, against --budget and the slowest call that was measured",
			Warns: fmt.Sprintf("more than %s, or less than %s, or less than ten of the slowest calls",
				short(detectionWarn), short(detectionLow)),
			Fails: fmt.Sprintf("%s or more", short(detectionFail)),
			Remedy: "SENTINEL SET NAME down-after-milliseconds 3000 on every Sentinel: so long, and about 1 s more, every " +
				"decision is made without the store; too low, and a pause is taken for a death",
		},
		{
			ID: "failover-timeout", Setups: sentinels, judge: judgeFailoverTimeout,
			Looks:  "failover-timeout at every Sentinel: a failover that got stuck is tried again after twice that",
			Warns:  fmt.Sprintf("more than %s, or less than %s or twice down-after", short(failoverWarn), short(failoverLow)),
			Fails:  fmt.Sprintf("more than %s, or less than down-after", short(failoverFail)),
			Remedy: "SENTINEL SET NAME failover-timeout 30000 on every Sentinel",
		},
		{
			ID: "parallel-syncs", Setups: sentinels, judge: judgeParallelSyncs,
			Looks: "parallel-syncs at every Sentinel, against the number of replicas that follow a new master",
			Warns: "more than 1, and all of them copy at once",
			Remedy: "SENTINEL SET NAME parallel-syncs 1 on every Sentinel: a replica that copies counts for neither " +
				"min-replicas-to-write nor the next election",
		},
	}
}

// downAfter is the longest of all Sentinels, or the time-out of a Cluster's nodes.
func (f *facts) downAfter() (longest time.Duration) {
	for _, w := range f.awake() {
		longest = max(longest, milliseconds(w.master, "down-after-milliseconds"))
	}
	for _, n := range f.alive() {
		longest = max(longest, milliseconds(n.config, "cluster-node-timeout"))
	}
	return longest
}

func judgeDownAfter(f *facts, v *verdict) {
	for _, w := range f.awake() {
		if v.knows(&w.server, partMaster) {
			judgeDetection(f, v, w.address, milliseconds(w.master, "down-after-milliseconds"))
		}
	}
}

// judgeDetection judges how long a dead master is waited for.
func judgeDetection(f *facts, v *verdict, address string, after time.Duration) {
	slowest := f.slowest()
	switch {
	case after >= detectionFail:
		v.fail(address, "a dead master is waited for %s: %d budgets without the store", short(after), after/f.cfg.Budget)
	case after > detectionWarn:
		v.warn(address, "a dead master is waited for %s: %d budgets without the store", short(after), after/f.cfg.Budget)
	case after < detectionLow:
		v.warn(address, "a master that is silent for %s is given up: a full copy or a paused machine takes longer",
			short(after))
	case after < 10*slowest:
		v.warn(address, "a master that is silent for %s is given up, and a call took %s just now",
			short(after), short(slowest))
	default:
		v.pass("%s: a dead master costs about %s without the store", short(after), short(after+time.Second))
	}
}

// slowest is the slowest call that was measured on any master.
func (f *facts) slowest() (worst time.Duration) {
	for _, n := range f.nodes {
		if len(n.latency) > 0 {
			worst = max(worst, n.latency[len(n.latency)-1])
		}
	}
	return worst
}

func judgeFailoverTimeout(f *facts, v *verdict) {
	for _, w := range f.awake() {
		if !v.knows(&w.server, partMaster) {
			continue
		}
		limit, after := milliseconds(w.master, "failover-timeout"), milliseconds(w.master, "down-after-milliseconds")
		switch {
		case limit > failoverFail:
			v.fail(w.address, "a failover that got stuck is tried again only after %s", short(2*limit))
		case limit < after:
			v.fail(w.address, "%s is less than down-after (%s): failovers are given up before they end",
				short(limit), short(after))
		case limit > failoverWarn:
			v.warn(w.address, "a failover that got stuck is tried again only after %s", short(2*limit))
		case limit < max(failoverLow, 2*after):
			v.warn(w.address, "a promotion that takes longer than %s is given up, and begins anew", short(limit))
		default:
			v.pass("%s", short(limit))
		}
	}
}

func judgeParallelSyncs(f *facts, v *verdict) {
	follow := max(len(f.nodes)-2, 1) // neither the dead master nor the promoted replica
	for _, w := range f.awake() {
		if !v.knows(&w.server, partMaster) {
			continue
		}
		atOnce := number(w.master, "parallel-syncs")
		if atOnce > 1 && atOnce >= int64(follow) {
			v.warn(w.address, "%d replicas copy at once after a failover, which is all of them", follow)
			continue
		}
		v.pass("%d", atOnce)
	}
}
