package preflight

import (
	"fmt"
	"slices"
	"time"
)

func networkChecks() []Check {
	return []Check{
		{
			ID: "reachable", Setups: everywhere, judge: judgeReachable,
			Looks: "every server named by --redis, and every one that those know of, from here and with our account",
			Fails: "one cannot be reached, does not answer, or does not let us in",
			Remedy: "start the server, open the network path and create the account there: a replica without our account " +
				"is a dead master after the next failover; --redis-nat if it is reached under another address; SENTINEL RESET " +
				"NAME or CLUSTER FORGET if it is gone for good",
		},
		{
			ID: "admin", Setups: everywhere, judge: judgeAdmin,
			Looks:  "whether --admin-username is let in",
			Warns:  "a server refuses it: what our account may not ask is skipped there",
			Remedy: "create the account on that server, or correct its password",
		},
		{
			ID: "version", Setups: everywhere, judge: judgeVersion,
			Looks:  "redis_version of every server",
			Warns:  fmt.Sprintf("older than %v, or not all the same", versionWarn),
			Fails:  fmt.Sprintf("older than %v", versionFail),
			Remedy: "upgrade, replicas first: a promoted replica of another version fails in its own way",
		},
		{
			ID: "tls", Setups: everywhere, judge: judgeTLS,
			Looks: "the certificate that every server shows us",
			Warns: fmt.Sprintf("it expires within %d days; or there is no TLS and a server is on another machine",
				int(certificateWarn.Hours()/24)),
			Fails:  "it has expired, or cannot be verified by our authorities and the server's name",
			Remedy: "issue a new certificate that names the address which Sentinels or the Cluster announce",
		},
		{
			ID: "clock", Setups: everywhere, judge: judgeClock,
			Looks: "TIME of every data node against ours, corrected by half of the round trip",
			Warns: fmt.Sprintf("two clocks differ by more than %s", short(skewWarn)),
			Fails: fmt.Sprintf("two clocks differ by more than %s", short(skewFail)),
			Remedy: "run chrony or another NTP client on every machine: a bucket that moves to a master whose clock is ahead " +
				"gains what it refills in that time, one that is behind waits for it",
		},
	}
}

func judgeReachable(f *facts, v *verdict) {
	for _, s := range f.servers() {
		if s.err != "" {
			v.fail(s.address, "%s", s.err)
		}
	}
	if len(f.servers()) > 0 {
		v.pass("%d of %d servers answer", len(f.servers()), len(f.servers()))
	}
}

func judgeAdmin(f *facts, v *verdict) {
	if !f.cfg.hasAdmin() {
		v.skip("", "no --admin-username: everything is asked with the service's own accounts")
		return
	}
	for _, s := range f.servers() {
		if s.adminErr != "" && s.err == "" {
			v.warn(s.address, "%s", s.adminErr)
		}
	}
	v.pass("let in everywhere")
}

func judgeVersion(f *facts, v *verdict) {
	found := map[string][]string{}
	for _, s := range f.servers() {
		if s.err != "" || !v.knows(s, partInfo) {
			continue
		}
		text := s.info["redis_version"]
		got, ok := parseVersion(text)
		found[text] = append(found[text], s.address)
		switch {
		case !ok:
			v.skip(s.address, "says no version")
		case got.before(versionFail):
			v.fail(s.address, "is %s, which the service does not support", text)
		case got.before(versionWarn):
			v.warn(s.address, "is %s, which is older than what the service is tested with", text)
		default:
			v.pass("%s", text)
		}
	}
	if len(found) > 1 {
		versions := make([]string, 0, len(found))
		for text, where := range found {
			versions = append(versions, fmt.Sprintf("%s on %d", text, len(where)))
		}
		slices.Sort(versions)
		v.warn("", "the servers differ: %v", versions)
	}
}

func judgeTLS(f *facts, v *verdict) {
	var first time.Time
	plain := false
	for _, s := range f.servers() {
		c := s.certificate
		switch {
		case c == nil && s.host == loopback:
			plain = true
		case c == nil && s.err == "":
			v.warn(s.address, "passwords and decisions cross the network in plain text").Remedy = "give the server a " +
				"tls-port and use rediss://, or --redis-tls and --sentinel-tls"
		case c == nil:
		case c.expires.IsZero() && s.err != "": // reachable says so already
		case c.err != "":
			v.fail(s.address, "%s", c.err)
		case c.expires.Sub(f.now) < certificateWarn:
			v.warn(s.address, "the certificate expires in %d days", int(c.expires.Sub(f.now).Hours()/24))
		case first.IsZero() || c.expires.Before(first):
			first = c.expires
		}
	}
	switch {
	case plain:
		v.pass("no TLS, and nothing leaves this machine")
	case !first.IsZero():
		v.pass("the first certificate expires in %d days", int(first.Sub(f.now).Hours()/24))
	}
}

func judgeClock(f *facts, v *verdict) {
	type reading struct {
		who   string
		clock clock
	}
	all := []reading{{who: "this machine"}}
	for _, n := range f.alive() {
		if v.knows(&n.server, partClock) {
			all = append(all, reading{n.address, n.clock})
		}
	}
	if len(all) == 1 {
		return
	}
	byAhead := func(a, b reading) int { return int(a.clock.ahead - b.clock.ahead) }
	low, high := slices.MinFunc(all, byAhead), slices.MaxFunc(all, byAhead)
	apart := high.clock.ahead - low.clock.ahead
	doubt := (low.clock.roundTrip + high.clock.roundTrip) / 2
	switch {
	case apart-doubt > skewFail:
		v.fail("", "the clock of %s is %s ahead of that of %s", high.who, short(apart), low.who)
	case apart-doubt > skewWarn:
		v.warn("", "the clock of %s is %s ahead of that of %s", high.who, short(apart), low.who)
	default:
		v.pass("%s apart at most, give or take %s", short(apart), short(doubt))
	}
}
