package preflight

import (
	"slices"
	"strings"
)

func accessChecks() []Check {
	return []Check{
		{
			ID: "acl", Setups: everywhere, judge: judgeNeeds,
			Looks: "every command that the service sends, and those inside its script, on every server: by ACL DRYRUN of " +
				"an admin account, else by trying them",
			Warns:  "one is not allowed that the service can do without (SENTINEL CKQUORUM, SENTINEL MYID)",
			Fails:  "any other is not",
			Remedy: "give the account what deploy/redis/*.acl gives it, on every node: ACLs are not replicated",
		},
		{
			ID: "acl-excess", Setups: everywhere, judge: judgeExcess,
			Looks: "commands and keys that the service's account has no use for, by ACL DRYRUN",
			Warns: "one is allowed",
			Remedy: "narrow the account to deploy/redis/*.acl: who steals its password can otherwise empty or " +
				"reconfigure the server",
		},
		{
			ID: "default-user", Setups: everywhere, judge: judgeDefaultUser,
			Looks:  "whether a stranger without a password is let in",
			Warns:  "one is",
			Remedy: "ACL SETUSER default off, or requirepass; on Sentinels as well: a stranger there can name another master",
		},
		{
			ID: "accounts", Setups: redundant, judge: judgeAccounts,
			Looks: "who logs in as whom: the service on data nodes and on Sentinels, Sentinels and replicas on data nodes",
			Warns: "two of them share an account, so that one leak opens both and neither can be rotated alone",
			Remedy: "make accounts for each, as deploy/redis/*.acl does: sentinel auth-user, masteruser, --redis-username, " +
				"--sentinel-username",
		},
		{
			ID: "script", Setups: everywhere, judge: judgeScript,
			Looks:  "SCRIPT LOAD, and a run on no bucket, on masters and replicas",
			Fails:  "the script cannot be run",
			Remedy: "allow +script|load +evalsha +time, or have somebody else load the script after every start of a server",
		},
	}
}

func judgeNeeds(f *facts, v *verdict) {
	for _, s := range f.servers() {
		if s.err != "" || !v.knows(s, partGrants) {
			continue
		}
		for _, g := range s.grants {
			judgeNeed(v, s.address, g)
		}
		if !slices.ContainsFunc(s.grants, func(g grant) bool { return g.need != excess && g.doubt != "" }) {
			v.pass("our account may send all that the service does")
		}
	}
}

func judgeNeed(v *verdict, address string, g grant) {
	switch {
	case g.need == excess:
	case g.doubt != "":
		v.skip(address, "%s: %s", g.command, g.doubt)
	case g.refused && g.need == useful:
		v.warn(address, "our account may not: %s, which the service can do without", g.command)
	case g.refused:
		v.fail(address, "our account may not: %s", g.command)
	}
}

func judgeExcess(f *facts, v *verdict) {
	for _, s := range f.servers() {
		if s.err != "" || !v.knows(s, partGrants) {
			continue
		}
		var allowed []string
		doubt := ""
		for _, g := range s.grants {
			switch {
			case g.need != excess:
			case g.doubt != "":
				doubt = g.doubt
			case !g.refused:
				allowed = append(allowed, g.command)
			}
		}
		switch {
		case len(allowed) > 0:
			v.warn(s.address, "our account may also: %s", strings.Join(allowed, ", "))
		case doubt != "":
			v.skip(s.address, "%s", doubt)
		default:
			v.pass("our account may do nothing that it does not need")
		}
	}
}

func judgeDefaultUser(f *facts, v *verdict) {
	for _, s := range f.servers() {
		switch {
		case s.err != "":
		case s.open:
			v.warn(s.address, "lets in anybody who reaches it, without a password")
		default:
			v.pass("nobody is let in without a password")
		}
	}
}

func judgeAccounts(f *facts, v *verdict) {
	asked := false
	for _, n := range f.alive() {
		if why, missing := n.missing[partClients]; missing {
			v.skip(n.address, "%s", why)
			continue
		}
		asked = true
		if slices.Contains(n.clients["sentinel"], f.account) {
			v.warn(n.address, "Sentinels log in with the service's account %q", f.account)
		}
		if n.config["masteruser"] == f.account || slices.Contains(n.clients["replica"], f.account) {
			v.warn(n.address, "replicas log in with the service's account %q", f.account)
		}
	}
	if f.shared {
		v.warn("", "data nodes and Sentinels know the service by the same password")
	}
	if asked {
		v.pass("nobody else logs in with the service's account")
	}
}

func judgeScript(f *facts, v *verdict) {
	for _, n := range f.alive() {
		switch {
		case n.script.runErr != "":
			v.fail(n.address, "%s", n.script.runErr)
		case n.script.loadErr != "":
			v.pass("it is there; our account may not load it: %s", n.script.loadErr)
		default:
			v.pass("loaded and run on %s", count(len(f.alive()), "server"))
		}
	}
}
