package redisstore

import (
	"cmp"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/scripts"
)

// group is the part of a batch that shares one command: all of it, or in a Cluster the calls of one slot.
type group struct {
	entries []entry // of the batch
	args    []any   // of the command
	asking  bool
}

// group cuts the batch into groups. Calls of one slot keep their order.
func (l *lane) group() {
	l.groups = l.groups[:0]
	if l.store.cfg.Redirect == nil {
		l.groups = append(l.groups, group{entries: l.batch})
		return
	}
	slices.SortStableFunc(l.batch, func(a, b entry) int { return cmp.Compare(a.call.Route.Slot, b.call.Route.Slot) })
	for from := 0; from < len(l.batch); {
		route := l.batch[from].call.Route
		to := from + 1
		for to < len(l.batch) && shares(route, l.batch[to].call.Route) {
			to++
		}
		l.groups = append(l.groups, group{entries: l.batch[from:to], asking: route.Asking})
		from = to
	}
}

// shares tells whether two calls, neighbours in a batch, may share a command.
func shares(a, b failure.Route) bool {
	return a.Slot == b.Slot && !a.Alone && !b.Alone && !a.Asking && !b.Asking
}

// encode makes one command of each group. The keys are passed by pointer, which go-redis reads and nobody copies.
func (l *lane) encode() {
	l.packed, l.args = l.packed[:0], l.args[:0]
	for i := range l.groups {
		g := &l.groups[i]
		from, packed, keys := len(l.args), len(l.packed), 0
		l.args = append(l.args, "evalsha", l.store.sha, 0)
		for j := range g.entries {
			call := g.entries[j].call
			if call.Route.Dry {
				l.packed = scripts.AppendQuestion(l.packed, call.Charges)
			} else {
				l.packed = scripts.AppendRequest(l.packed, call.Charges)
			}
			for k := range call.Charges {
				l.args = append(l.args, &call.Charges[k].Key)
			}
			keys += len(call.Charges)
		}
		l.args[from+2] = keys
		// What is appended later may move both slices; these parts of them stay as they are.
		l.args = append(l.args, l.packed[packed:len(l.packed):len(l.packed)])
		g.args = l.args[from:len(l.args):len(l.args)]
	}
}

// reply is what a server said to one group.
type reply struct {
	text string
	err  error
}

// send makes one round trip with all groups, and returns what was said to each.
func (l *lane) send(c *conn) []reply {
	l.replies = l.replies[:0]
	if len(l.groups) == 1 && !l.groups[0].asking {
		text, err := c.decide(l.groups[0].args)
		l.replies = append(l.replies, reply{text, err})
		return l.replies
	}
	return append(l.replies, c.decideAll(l.groups)...)
}

// decideAll runs the script once for each group, all in one pipeline. A connection that breaks fails all groups whose
// reply had not arrived.
func (c *conn) decideAll(groups []group) []reply {
	ctx, cancel := c.context()
	defer cancel()
	pipe := c.redis.Pipeline()
	asked, decided := make([]*redis.Cmd, len(groups)), make([]*redis.StringCmd, len(groups))
	for i := range groups {
		if groups[i].asking {
			asked[i] = pipe.Do(ctx, "asking")
		}
		decided[i] = redis.NewStringCmd(ctx, groups[i].args...)
		_ = pipe.Process(ctx, decided[i]) // only queues it
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	replies := make([]reply, len(groups))
	for i, cmd := range decided {
		replies[i] = reply{cmd.Val(), cmd.Err()}
		if cmd.Val() != "" { // it was read; go-redis blames a connection that broke after it on every command
			replies[i].err = nil
		}
		if replies[i].err != nil && asked[i] != nil && asked[i].Err() != nil {
			replies[i].err = asked[i].Err() // says why the other was sent away
		}
	}
	return replies
}

func (g *group) redirected() bool { return len(g.entries) > 0 && g.entries[0].redirected != nil }
