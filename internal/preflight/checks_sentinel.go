package preflight

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

func sentinelChecks() []Check {
	return []Check{
		{
			ID: "sentinels", Setups: sentinels, judge: judgeSentinels,
			Looks:  "how many Sentinels know of each other",
			Warns:  "an even number, or fewer known to one than to another",
			Fails:  "fewer than 3",
			Remedy: "run three or five, each on a machine of its own",
		},
		{
			ID: "sentinels-down", Setups: sentinels, judge: judgeSentinelsDown,
			Looks: "Sentinels that others know of and take for down, and tilt mode",
			Warns: "there is one: the dead count for the majority, too",
			Fails: "a Sentinel is in tilt mode: its clock jumped, and it decides nothing",
			Remedy: "start it again; if it is gone for good, SENTINEL RESET NAME on each of the others, one after the other, " +
				"half a minute apart",
		},
		{
			ID: "agreement", Setups: sentinels, judge: judgeAgreement,
			Looks: "the master's address, its configuration epoch, quorum, down-after-milliseconds, failover-timeout and " +
				"parallel-syncs, at every Sentinel",
			Warns:  "settings differ",
			Fails:  "they name different masters, or one does not know the master's name",
			Remedy: "wait for a failover to end; settings are set by SENTINEL SET on every Sentinel, as they do not spread",
		},
		{
			ID: "ckquorum", Setups: sentinels, judge: judgeQuorum,
			Looks:  "SENTINEL CKQUORUM at every Sentinel",
			Fails:  "it finds no quorum or no majority",
			Remedy: "start the missing Sentinels, and open the network among them",
		},
		{
			ID: "majority", Setups: sentinels, judge: judgeMajority,
			Looks: "max(quorum, floor(n/2)+1), with n all Sentinels that are known, against those that answer us now, and " +
				"against one less",
			Fails:  "too few now, or after the loss of one: no failover",
			Remedy: "run one more, or lower the quorum: SENTINEL SET NAME quorum 2 on every Sentinel",
		},
		{
			ID: "hosts", Setups: sentinels, judge: judgeHosts,
			Looks: "the same after the loss of one machine, that is one IP address; who shares a machine with the master or " +
				"with another Sentinel",
			Warns: "the loss of the master's machine leaves just enough; two Sentinels share a machine; or everything runs on " +
				"this machine, which is a trial and no launch",
			Fails:  "the loss of one machine leaves too few: no failover",
			Remedy: "give every Sentinel a machine of its own, best one without the master",
		},
	}
}

// known is how many Sentinels there are, as the one says that knows of most.
func (f *facts) known() int {
	most := 0
	for _, w := range f.awake() {
		if len(w.master) > 0 {
			most = max(most, 1+int(number(w.master, "num-other-sentinels")))
		}
	}
	return max(most, len(f.watchers))
}

func judgeSentinels(f *facts, v *verdict) {
	known := f.known()
	for _, w := range f.awake() {
		if !v.knows(&w.server, partMaster) {
			continue
		}
		if knows := 1 + int(number(w.master, "num-other-sentinels")); knows < known {
			v.warn(w.address, "knows of %s, itself included, and there are %d", count(knows, "Sentinel"), known).Remedy =
				"let it reach the master and the others: they find each other over the master's channel " +
					"__sentinel__:hello, and their accounts need it"
		}
		v.pass("%d", known)
	}
	switch {
	case len(f.awake()) == 0:
	case known < 3:
		v.fail("", "%s: the loss of one ends failovers", count(known, "Sentinel"))
	case known%2 == 0:
		v.warn("", "%d Sentinels survive the loss of no more than %d do", known, known-1)
	}
}

func judgeSentinelsDown(f *facts, v *verdict) {
	for _, w := range f.awake() {
		if w.info["sentinel_tilt"] == "1" {
			v.fail(w.address, "is in tilt mode").Remedy = "wait half a minute; look for a paused machine or a clock that was set"
		}
		if !v.knows(&w.server, partSentinels) {
			continue
		}
		v.pass("every Sentinel sees every other")
		for _, other := range w.others {
			if flags := other["flags"]; strings.Contains(flags, "down") || strings.Contains(flags, "disconnected") {
				v.warn(endpoint(other), "is down, as others see it (%s)", flags)
			}
		}
	}
	v.results = distinct(v.results)
}

// distinct drops results that say the same of the same server.
func distinct(all []Result) []Result {
	var kept []Result
	for _, r := range all {
		if !slices.ContainsFunc(kept, func(k Result) bool {
			return k.Reason == r.Reason && k.Status == r.Status && slices.Equal(k.Nodes, r.Nodes)
		}) {
			kept = append(kept, r)
		}
	}
	return kept
}

func judgeAgreement(f *facts, v *verdict) {
	asked := slices.DeleteFunc(f.awake(), func(w *watcher) bool {
		if w.ignorant {
			r := v.fail(w.address, "knows no master of the name in --redis")
			r.Remedy = "SENTINEL MASTERS lists the names that it knows; SENTINEL MONITOR adds one"
			return true
		}
		return !v.knows(&w.server, partMaster)
	})
	masters := tally(asked, func(w *watcher) string { return endpoint(w.master) })
	if len(masters) > 1 {
		v.fail("", "they name different masters: %s", strings.Join(masters, ", "))
		return
	}
	for _, name := range []string{
		"config-epoch", "quorum", "down-after-milliseconds", "failover-timeout", "parallel-syncs",
	} {
		if values := tally(asked, func(w *watcher) string { return w.master[name] }); len(values) > 1 {
			v.warn("", "%s differs: %s", name, strings.Join(values, ", "))
		}
	}
	if len(asked) > 0 {
		v.pass("%s, epoch %s", endpoint(asked[0].master), asked[0].master["config-epoch"])
	}
}

// tally is each value with the number of Sentinels that have it, sorted.
func tally(all []*watcher, value func(*watcher) string) []string {
	counts := map[string]int{}
	for _, w := range all {
		counts[value(w)]++
	}
	lines := make([]string, 0, len(counts))
	for value, n := range counts {
		lines = append(lines, fmt.Sprintf("%s (%d)", value, n))
	}
	slices.Sort(lines)
	return lines
}

func judgeQuorum(f *facts, v *verdict) {
	for _, w := range f.awake() {
		switch {
		case !v.knows(&w.server, partQuorum):
		case w.quorumErr != "":
			v.fail(w.address, "%s", w.quorumErr)
		default:
			v.pass("%s", w.quorum)
		}
	}
}

func judgeMajority(f *facts, v *verdict) {
	for _, w := range f.awake() {
		if !v.knows(&w.server, partMaster) {
			continue
		}
		known, awake, quorum := f.known(), len(f.awake()), int(number(w.master, "quorum"))
		need := threshold(quorum, known)
		said := fmt.Sprintf("a failover takes %d of %d Sentinels (quorum %d, majority %d), %d answer",
			need, known, quorum, known/2+1, awake)
		switch {
		case awake < need:
			v.fail(w.address, "%s: no failover now", said)
		case awake-1 < need:
			v.fail(w.address, "%s: no failover after the loss of one", said)
		default:
			v.pass("%s", said)
		}
	}
}

func judgeHosts(f *facts, v *verdict) {
	asked := slices.DeleteFunc(f.awake(), func(w *watcher) bool { return !v.knows(&w.server, partMaster) })
	if len(asked) == 0 {
		return
	}
	need := threshold(int(number(asked[0].master, "quorum")), f.known())
	masterHost := ""
	if n := f.node(f.master); n != nil {
		masterHost = n.host
	}
	for _, s := range survivals(f.awake(), masterHost) {
		what := "machine " + s.host
		if s.withMaster {
			what = "the master's machine " + s.host
		}
		switch {
		case s.host == loopback:
			v.warn("", "Sentinels run on this machine: its loss takes %d of them", len(f.awake())-s.left)
		case s.left < need:
			v.fail("", "the loss of %s leaves %s, and a failover takes %d", what, count(s.left, "Sentinel"), need)
		case len(f.awake())-s.left > 1:
			v.warn("", "%d Sentinels share %s", len(f.awake())-s.left, what)
		case s.withMaster && s.left == need:
			v.warn("", "a Sentinel shares %s: with it gone, all %d others must agree, and none may be late", what, s.left)
		case s.withMaster:
			v.pass("a Sentinel shares %s; %d are left if it goes, and a failover takes %d", what, s.left, need)
		default:
			v.pass("the loss of any machine leaves enough: a failover takes %d", need)
		}
	}
}

// endpoint is host:port of what Sentinel or INFO says of a server.
func endpoint(m map[string]string) string { return net.JoinHostPort(m["ip"], m["port"]) }
