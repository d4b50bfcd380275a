package topology

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// view is what one node of a Cluster knows: a line of CLUSTER NODES for each node, itself among them.
type view []entry

// entry is what a node knows about one node. The zero value stands for nobody.
type entry struct {
	id, addr, master string // master is the id of the one it follows; "-" for a master
	flags            []string
	ranges           [][2]int // slots, ends included
}

// view asks the node.
func (n *Node) view(ctx context.Context) (view, error) {
	text, err := n.client.ClusterNodes(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("topology: %s: %w", n.name, err)
	}
	var v view
	for line := range strings.Lines(text) {
		e, err := parseEntry(line)
		if err != nil {
			return nil, fmt.Errorf("topology: %s: %w", n.name, err)
		}
		v = append(v, e)
	}
	return v, nil
}

// parseEntry reads "id host:port@bus,hostname flags master ping pong epoch link slot-range...".
func parseEntry(line string) (entry, error) {
	words := strings.Fields(line)
	if len(words) < 8 {
		return entry{}, fmt.Errorf("a line of CLUSTER NODES has only %d words", len(words))
	}
	addr, _, _ := strings.Cut(words[1], "@")
	e := entry{id: words[0], addr: addr, flags: strings.Split(words[2], ","), master: words[3]}
	for _, word := range words[8:] {
		if strings.HasPrefix(word, "[") {
			continue // a slot on its way elsewhere, which is in a range as well
		}
		first, last, isRange := strings.Cut(word, "-")
		if !isRange {
			last = first
		}
		a, errA := strconv.Atoi(first)
		b, errB := strconv.Atoi(last)
		if errA != nil || errB != nil || a < 0 || b >= Slots {
			return entry{}, fmt.Errorf("%q is no range of slots", word)
		}
		e.ranges = append(e.ranges, [2]int{a, b})
	}
	return e, nil
}

func (e entry) has(flag string) bool { return slices.Contains(e.flags, flag) }

// at is the entry of the node at the address.
func (v view) at(addr string) entry { return v.find(func(e entry) bool { return e.addr == addr }) }

// myself is the entry of the node that was asked.
func (v view) myself() entry { return v.find(func(e entry) bool { return e.has("myself") }) }

func (v view) find(is func(entry) bool) entry {
	if i := slices.IndexFunc(v, is); i >= 0 {
		return v[i]
	}
	return entry{}
}

// owners are the addresses of those who serve each slot.
func (v view) owners() *[Slots]string {
	var all [Slots]string
	for _, e := range v {
		for _, r := range e.ranges {
			for slot := r[0]; slot <= r[1]; slot++ {
				all[slot] = e.addr
			}
		}
	}
	return &all
}
