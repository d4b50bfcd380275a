package preflight

import (
	"fmt"
	"strings"
	"time"
)

// streamChecks are about what a replica that was away catches up by, and about which one takes over.
func streamChecks() []Check {
	return []Check{
		{
			ID: "backlog", Setups: redundant, judge: judgeBacklog,
			Looks: fmt.Sprintf("repl-backlog-size of every data node, against what is written in --outage, times %d; "+
				"what is written is the larger of what was measured and what --decisions takes at %d bytes each",
				backlogSafety, decisionBytes),
			Warns: fmt.Sprintf("smaller; or, where nothing is known of the rate, too small for %d decisions/s",
				backlogDecisions),
			Remedy: "raise repl-backlog-size: a replica that was away for longer copies everything, and the master forks for it",
		},
		{
			ID: "output-buffer", Setups: redundant, judge: judgeOutputBuffer,
			Looks: "client-output-buffer-limit of every data node, for replicas",
			Warns: fmt.Sprintf("the hard limit is below %s or below repl-backlog-size, or the soft limit is reached by what is "+
				"written in its time", size(bufferLow)),
			Remedy: "client-output-buffer-limit replica 128mb 64mb 60, say: a replica that is thrown out copies everything, " +
				"and is thrown out again",
		},
		{
			ID: "priorities", Setups: redundant, judge: judgePriorities,
			Looks: "replica-priority, and who would win an election now: not down, reachable, priority above 0, not cut off " +
				"for longer than 10 x down-after; then lower priority, higher offset, smaller run ID",
			Warns:  "only one of several replicas could be promoted",
			Fails:  "none could",
			Remedy: "CONFIG SET replica-priority 100 on every replica that may become master, and the same in redis.conf",
		},
	}
}

func judgeBacklog(f *facts, v *verdict) {
	for _, g := range f.groups() {
		if g.master == nil || !v.knows(&g.master.server, partWrites) {
			continue
		}
		rate, guess := f.writes(g.master), ""
		if f.cfg.Decisions == 0 && rate < quietDecisions*decisionBytes {
			rate, guess = backlogDecisions*decisionBytes, " (a guess: little is written now, and --decisions is not given)"
		}
		need := int64(rate * f.cfg.Outage.Seconds() * backlogSafety)
		for _, n := range g.members() {
			if !v.knows(&n.server, partInfo) {
				continue
			}
			have := number(n.info, "repl_backlog_size")
			lasts := time.Duration(float64(have) / rate * float64(time.Second))
			said := fmt.Sprintf("%s lasts %s at %s/s%s", size(have), short(lasts), size(int64(rate)), guess)
			if have < need {
				v.warn(n.address, "%s; an outage of %s, times %d, needs %s",
					said, short(f.cfg.Outage), backlogSafety, size(need))
				continue
			}
			v.pass("%s", said)
		}
	}
}

// writes is what a master replicates at the peak, in bytes a second.
func (f *facts) writes(master *node) float64 {
	expected := f.cfg.Decisions * decisionBytes / float64(max(len(f.groups()), 1))
	return max(master.writes, expected)
}

func judgeOutputBuffer(f *facts, v *verdict) {
	for _, g := range f.groups() {
		rate := 0.0
		if g.master != nil {
			rate = f.writes(g.master)
		}
		for _, n := range g.members() {
			if v.knows(&n.server, partConfig) && v.knows(&n.server, partInfo) {
				judgeBuffer(v, n, rate)
			}
		}
	}
}

// judgeBuffer judges the limit of a node that sends rate bytes a second to its replicas.
func judgeBuffer(v *verdict, n *node, rate float64) {
	limit, ok := parseBufferLimit(n.config["client-output-buffer-limit"])
	backlog := number(n.info, "repl_backlog_size")
	inTime := int64(rate * limit.softFor.Seconds())
	switch {
	case !ok:
		v.skip(n.address, "says nothing of replicas")
	case limit.hard > 0 && limit.hard < bufferLow:
		v.warn(n.address, "throws a replica out that is %s behind", size(limit.hard))
	case limit.hard > 0 && limit.hard < backlog:
		v.warn(n.address, "throws a replica out at %s, before the backlog of %s is used", size(limit.hard), size(backlog))
	case limit.soft > 0 && inTime > limit.soft:
		v.warn(n.address, "throws a replica out after %s at %s, and writes %s in that time",
			short(limit.softFor), size(limit.soft), size(inTime))
	case limit.hard == 0 && limit.soft == 0:
		v.pass("no limit: a replica that hangs takes the master's memory")
	default:
		v.pass("%s, or %s for %s", size(limit.hard), size(limit.soft), short(limit.softFor))
	}
}

func judgePriorities(f *facts, v *verdict) {
	for _, g := range f.groups() {
		candidates := f.candidates(g)
		if len(candidates) == 0 {
			continue
		}
		e := elect(candidates, f.downAfter(), 0)
		refused := ""
		for _, c := range candidates {
			if why, ok := e.refused[c.address]; ok {
				refused += "; " + c.address + " " + why
			}
		}
		switch {
		case len(e.eligible) == 0:
			v.fail(g.address, "no replica could be promoted%s", refused)
		case len(e.eligible) == 1 && len(candidates) > 1:
			v.warn(g.address, "only %s could be promoted%s", e.eligible[0].address, refused)
		default:
			v.pass("%s", winners(f, e, refused))
		}
	}
}

func winners(f *facts, e election, refused string) string {
	if f.setup == Cluster {
		return "every master has a replica that could be promoted"
	}
	first, tie := e.eligible[0], ""
	if len(e.eligible) > 1 && e.eligible[1].priority == first.priority {
		tie = "; equal priorities, so that the offset decides, then the run ID"
	}
	return fmt.Sprintf("%s would be promoted now (priority %d)%s%s", first.address, first.priority, tie, refused)
}

// candidates are the replicas as Sentinels see them, or as they see themselves.
func (f *facts) candidates(g group) []candidate {
	if f.setup == Sentinel {
		for _, w := range f.awake() {
			if len(w.replicas) > 0 {
				return fromSentinel(w.replicas)
			}
		}
		return nil
	}
	var all []candidate
	for _, n := range g.replicas {
		c := candidate{address: n.address, away: n.err != "", priority: 100}
		if _, missing := n.missing[partInfo]; !missing && !c.away {
			c.priority, c.offset = number(n.info, "slave_priority"), number(n.info, "slave_repl_offset")
			c.runID = n.info["run_id"]
		}
		all = append(all, c)
	}
	return all
}

func fromSentinel(replicas []map[string]string) []candidate {
	all := make([]candidate, 0, len(replicas))
	for _, r := range replicas {
		flags := "," + r["flags"] + ","
		all = append(all, candidate{
			address:  endpoint(r),
			down:     strings.Contains(flags, ",s_down,"),
			away:     strings.Contains(flags, ",disconnected,") || milliseconds(r, "info-refresh") > infoFresh,
			priority: number(r, "slave-priority"), offset: number(r, "slave-repl-offset"), runID: r["runid"],
			cutOff: milliseconds(r, "master-link-down-time"),
		})
	}
	return all
}

// infoFresh is how old INFO may be: Sentinel asks every 10 s, and takes three in vain for no answer.
const infoFresh = 30 * time.Second
