package preflight

import (
	"context"
	"errors"

	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/scripts"
)

// want is a command to ask the ACL about.
type want struct {
	title string
	need  need
	args  []any
}

// nodeWants are the commands of the service on a data node, those inside its script among them, and others that an
// account of the service should not have.
func (s *survey) nodeWants() []want {
	key := s.bucket + "acl"
	all := []want{
		{title: "PING", need: needed, args: []any{"ping"}},
		{title: "ROLE", need: needed, args: []any{"role"}},
		{title: "SCRIPT LOAD", need: needed, args: []any{"script", "load", s.script}},
		{title: "EVALSHA on rl:*", need: needed, args: s.decision(key)},
		{title: "TIME", need: needed, args: []any{"time"}},
		{title: "GET of rl:*", need: needed, args: []any{"get", key}},
		{title: "SET of rl:*", need: needed, args: []any{"set", key, "", "px", 1000}},
	}
	if s.db != 0 {
		all = append(all, want{title: "SELECT", need: needed, args: []any{"select", s.db}})
	}
	if s.setup == Cluster {
		all = append(all,
			want{title: "CLUSTER NODES", need: needed, args: []any{"cluster", "nodes"}},
			want{title: "CLUSTER SLOTS", need: needed, args: []any{"cluster", "slots"}},
			want{title: "ASKING", need: needed, args: []any{"asking"}},
			want{title: "CLUSTER FAILOVER", need: excess, args: []any{"cluster", "failover"}},
		)
	}
	return append(all, []want{
		{title: "FLUSHALL", need: excess, args: []any{"flushall"}},
		{title: "KEYS", need: excess, args: []any{"keys", "*"}},
		{title: "GET of any key", need: excess, args: []any{"get", "preflight:of:somebody:else"}},
		{title: "EVAL", need: excess, args: []any{"eval", "return 1", 0}},
		{title: "SCRIPT FLUSH", need: excess, args: []any{"script", "flush"}},
		{title: "CONFIG SET", need: excess, args: []any{"config", "set", "maxmemory", "0"}},
		{title: "REPLICAOF", need: excess, args: []any{"replicaof", "no", "one"}},
		{title: "ACL SETUSER", need: excess, args: []any{"acl", "setuser", "preflight"}},
		{title: "SHUTDOWN", need: excess, args: []any{"shutdown"}},
	}...)
}

// watcherWants are the same on a Sentinel.
func (s *survey) watcherWants() []want {
	master := s.seeds.Master
	return []want{
		{title: "PING", need: needed, args: []any{"ping"}},
		{title: "SENTINEL GET-MASTER-ADDR-BY-NAME", need: needed, args: []any{"sentinel", "get-master-addr-by-name", master}},
		{title: "SENTINEL MASTER", need: needed, args: []any{"sentinel", "master", master}},
		{title: "SENTINEL REPLICAS", need: needed, args: []any{"sentinel", "replicas", master}},
		{title: "SENTINEL SENTINELS", need: needed, args: []any{"sentinel", "sentinels", master}},
		{title: "PSUBSCRIBE to all channels", need: needed, args: []any{"psubscribe", "*"}},
		{title: "SENTINEL CKQUORUM", need: useful, args: []any{"sentinel", "ckquorum", master}},
		{title: "SENTINEL MYID", need: useful, args: []any{"sentinel", "myid"}},
		{title: "SENTINEL FAILOVER", need: excess, args: []any{"sentinel", "failover", master}},
		{title: "SENTINEL SET", need: excess, args: []any{"sentinel", "set", master, "quorum", "1"}},
		{title: "SENTINEL REMOVE", need: excess, args: []any{"sentinel", "remove", master}},
		{title: "ACL SETUSER", need: excess, args: []any{"acl", "setuser", "preflight"}},
		{title: "SHUTDOWN", need: excess, args: []any{"shutdown"}},
	}
}

// askGrants asks the ACL about each, and sends what is harmless where it may not be asked.
func (g *guest) askGrants(ctx context.Context, user string, wants []want) {
	var all []grant
	for _, w := range wants {
		found, err := g.dryRun(ctx, user, w)
		if errors.Is(err, errNoDryRun) {
			found = g.tryInstead(ctx, w, err)
		}
		all = append(all, found)
	}
	g.at.grants = all
}

// tryInstead sends a command that the service needs, and never one that it should not have.
func (g *guest) tryInstead(ctx context.Context, w want, why error) grant {
	result := grant{command: w.title, need: w.need}
	if w.need == excess {
		result.doubt = doubtOf(why)
		return result
	}
	send := g.ours.ask
	if w.args[0] == "psubscribe" {
		send = g.ours.subscribe
	}
	_, err := send(ctx, w.args...)
	refused := refusal(err)
	switch {
	case refused != nil && (refused.forbidden() || refused.unknown()):
		result.refused = true
	case refused == nil && err != nil:
		result.doubt = reason(err)
	}
	return result
}

func doubtOf(err error) string {
	refused := refusal(err)
	switch {
	case refused == nil:
		return reason(err)
	case refused.forbidden():
		return "not permitted: " + refused.who + " may not send ACL DRYRUN (so it is not all-powerful), and this is not tried"
	default:
		return "this server has no ACL DRYRUN (Redis 7.0 has), and this is not tried"
	}
}

// decision is a call of the script that charges one token to the bucket, which expires within a second.
func (s *survey) decision(key string) []any {
	charge := limit.Charge{
		Key: key, Cost: 1,
		Limit: limit.NewTokenBucket(1000*limit.Micro, limit.Rate{Micro: 1000 * limit.Micro, Period: limit.Micro}),
	}
	return []any{"evalsha", s.sha, 1, key, scripts.AppendRequest(nil, []limit.Charge{charge})}
}
