package preflight

import (
	"fmt"
	"time"
)

// loadChecks are about how much servers can still take, and how quickly.
func loadChecks() []Check {
	return []Check{
		{
			ID: "latency", Setups: everywhere, judge: judgeLatency,
			Looks: "calls of the service's script on each master, at a low rate, against --budget",
			Warns: "the 99th percentile takes more than half of it, or the worst call more than all of it",
			Fails: "the 99th percentile takes more than all of it",
			Remedy: "bring the service nearer to Redis, look for what stalls either machine (slow, persistence), or raise " +
				"--budget together with Envoy's filter timeout",
		},
		{
			ID: "connections", Setups: everywhere, judge: judgeConnections,
			Looks:  "connected_clients of every data node against maxclients",
			Warns:  fmt.Sprintf("more than %d %% are in use, or some were rejected (counted without TLS only)", clientsWarn),
			Fails:  fmt.Sprintf("more than %d %% are in use", clientsFail),
			Remedy: "raise maxclients, and the limit of open files with it: after a failover everybody connects at once",
		},
		{
			ID: "slow", Setups: everywhere, judge: judgeSlow,
			Looks: "the newest entries of the slow log, and the latency monitor, within the last hour",
			Warns: "something held the server up for longer than --budget",
			Remedy: "find it by SLOWLOG GET and LATENCY DOCTOR; commands over all keys, big deletions and forks have no place " +
				"on a limiter's Redis",
		},
	}
}

func judgeLatency(f *facts, v *verdict) {
	for _, n := range f.masters() {
		if !v.knows(&n.server, partLatency) {
			continue
		}
		p50, p99, worst := percentile(n.latency, 50), percentile(n.latency, 99), n.latency[len(n.latency)-1]
		said := fmt.Sprintf("p50 %s, p99 %s, worst %s of %s, the budget is %s",
			short(p50), short(p99), short(worst), count(len(n.latency), "call"), short(f.cfg.Budget))
		switch {
		case p99 > f.cfg.Budget:
			v.fail(n.address, "%s", said)
		case p99 > f.cfg.Budget/2, worst > f.cfg.Budget:
			v.warn(n.address, "%s", said)
		default:
			v.pass("%s", said)
		}
	}
}

// percentile of sorted durations, by the nearest rank.
func percentile(sorted []time.Duration, p int) time.Duration {
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

func judgeConnections(f *facts, v *verdict) {
	for _, n := range f.alive() {
		if !v.knows(&n.server, partInfo) {
			continue
		}
		used, most := number(n.info, "connected_clients"), number(n.info, "maxclients")
		rejected := number(n.info, "rejected_connections")
		if n.certificate != nil { // with TLS, whoever only knocks is counted too
			rejected = 0
		}
		switch share := percent(used, most); {
		case share >= clientsFail:
			v.fail(n.address, "%d of %d connections are in use", used, most)
		case share >= clientsWarn:
			v.warn(n.address, "%d of %d connections are in use", used, most)
		case rejected > 0:
			v.warn(n.address, "%d connections have been rejected since it started", rejected)
		default:
			v.pass("%d of %d in use", used, most)
		}
	}
}

func judgeSlow(f *facts, v *verdict) {
	for _, n := range f.alive() {
		if !v.knows(&n.server, partSlow) {
			continue
		}
		if n.slow.count > 0 {
			v.warn(n.address, "%s took longer than %s, the worst %s",
				count(n.slow.count, "command"), short(f.cfg.Budget), short(n.slow.worst))
		}
		for _, event := range n.slow.events {
			v.warn(n.address, "%s", event)
		}
		hint := ""
		if n.config["latency-monitor-threshold"] == "0" {
			hint = "; CONFIG SET latency-monitor-threshold 10 would note forks and disks as well"
		}
		v.pass("nothing above %s in the last hour%s", short(f.cfg.Budget), hint)
	}
}
