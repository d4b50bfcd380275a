package drill

import (
	"context"
	"strings"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

// gossipInterval is how often each node of a Cluster is asked what it thinks of the others.
const gossipInterval = 25 * time.Millisecond

// opinion is what one node of a Cluster thinks of another.
type opinion struct {
	flags string
	// owns is whether it is taken for a master of slots.
	owns bool
}

// gossip makes events of what the nodes of a Cluster say about each other. names are theirs by announced address.
func (w *watcher) gossip(ctx context.Context, nodes []observed) {
	names := map[string]string{}
	for _, n := range nodes {
		names[n.address] = n.name
	}
	for _, n := range nodes {
		var before map[string]opinion
		w.every(ctx, gossipInterval, func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, lookTimeout)
			defer cancel()
			text, err := n.client.ClusterNodes(ctx).Result()
			if err != nil {
				return // it is dead or frozen, and has no opinion
			}
			now := opinions(text)
			events := changes(n, names, before, now)
			before = now
			at := w.rec.now()
			w.rec.write(func(j *journal.Journal) {
				for _, e := range events {
					e.At = at
					j.Events = append(j.Events, e)
				}
			})
		})
	}
}

// opinions reads CLUSTER NODES: "id host:port@bus flags master ping pong epoch link slots...". They are by address.
func opinions(text string) map[string]opinion {
	all := map[string]opinion{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 8 {
			continue
		}
		address, _, _ := strings.Cut(words[1], "@")
		all[address] = opinion{
			flags: words[2],
			owns:  strings.Contains(words[2], "master") && len(words) > 8 && !strings.HasPrefix(words[8], "["),
		}
	}
	return all
}

// changes are the events between two looks at one node; nothing is one before the first look.
func changes(of observed, names map[string]string, before, now map[string]opinion) []journal.Event {
	if before == nil {
		return nil
	}
	var list []journal.Event
	for address, o := range now {
		was := before[address]
		add := func(name string) {
			kind := "slave"
			if strings.Contains(o.flags, "master") {
				kind = "master"
			}
			list = append(list, journal.Event{Source: of.name, Name: name, Kind: kind, Text: names[address]})
		}
		if strings.Contains(o.flags, "fail?") && !strings.Contains(was.flags, "fail") {
			add(journal.EventPFail)
		}
		if failed(o.flags) && !failed(was.flags) {
			add(journal.EventFail)
		}
		if o.owns && !was.owns && was.flags != "" {
			name := journal.EventOwner
			if address == of.address {
				name = journal.EventTaken
			}
			add(name)
		}
	}
	return list
}

// failed is whether flags hold fail, and not only fail?.
func failed(flags string) bool {
	for flag := range strings.SplitSeq(flags, ",") {
		if flag == "fail" {
			return true
		}
	}
	return false
}
