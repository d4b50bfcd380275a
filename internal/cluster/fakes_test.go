package cluster_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/honestlimit/ratelimit/internal/cluster"
	"github.com/honestlimit/ratelimit/internal/redistest"
)

// fakes are nodes that say whatever a test wants. Each owns an equal share of the slots, in order.
type fakes struct {
	nodes []*redistest.Fake

	mu      sync.Mutex
	answers map[int]func(keys []string) string // of some nodes, to the script; the others admit everything
	asked   []string                           // "node: command keys", in order
	heir    int                                // who took over from the first node; 0: nobody did
	late    string                             // the address of one more node, without slots; empty: there is none
	crowned bool                               // that one took over from the first node
}

func startFakes(t *testing.T, n int) *fakes {
	t.Helper()
	f := &fakes{answers: map[int]func([]string) string{}}
	for i := range n {
		f.nodes = append(f.nodes, redistest.NewFake(t, redistest.Healthy(func(args []string) string { return f.say(i, args) })))
	}
	return f
}

func (f *fakes) addresses() (all []string) {
	for _, n := range f.nodes {
		all = append(all, n.Addr())
	}
	return all
}

// answer changes what a node says to the script; nil admits everything.
func (f *fakes) answer(node int, answer func(keys []string) string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[node] = answer
}

// log is what was asked of the nodes, and forgotten by being read.
func (f *fakes) log() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.asked
	f.asked = nil
	return out
}

func (f *fakes) say(node int, args []string) string {
	if args[0] == "cluster" {
		if strings.EqualFold(args[1], "nodes") {
			return bulk(f.topology(node))
		}
		return "*0\r\n"
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if args[0] == "asking" {
		f.asked = append(f.asked, fmt.Sprintf("%d: asking", node))
		return "+OK\r\n"
	}
	var keys []string
	for _, key := range args[3 : len(args)-1] {
		keys = append(keys, strings.TrimPrefix(key, "rl:v1:"))
	}
	if strings.HasPrefix(keys[0], "rl:proof") { // how a lane proves an open breaker's store
		return admits(1)
	}
	f.asked = append(f.asked, fmt.Sprintf("%d: %s", node, strings.Join(keys, " ")))
	if answer := f.answers[node]; answer != nil {
		return answer(keys)
	}
	return admits(len(keys))
}

// topology is what CLUSTER NODES says.
func (f *fakes) topology(self int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	for i, n := range f.nodes {
		flags := "master"
		if i == self {
			flags = "myself,master"
		}
		first, last := i*cluster.Slots/len(f.nodes), (i+1)*cluster.Slots/len(f.nodes)-1
		epoch, slots := i+1, fmt.Sprintf("%d-%d", first, last)
		switch {
		case (f.heir > 0 || f.crowned) && i == 0:
			slots = ""
		case f.heir > 0 && i == f.heir:
			epoch, slots = 99, fmt.Sprintf("0-%d %s", cluster.Slots/len(f.nodes)-1, slots)
		}
		fmt.Fprintf(&b, "node%d %s@1 %s - 0 0 %d connected %s\n", i, n.Addr(), flags, epoch, slots)
	}
	flags := "master"
	if self == len(f.nodes) {
		flags = "myself,master"
	}
	switch {
	case f.crowned:
		fmt.Fprintf(&b, "late %s@1 %s - 0 0 99 connected 0-%d\n", f.late, flags, cluster.Slots/len(f.nodes)-1)
	case f.late != "":
		fmt.Fprintf(&b, "late %s@1 %s - 0 0 50 connected\n", f.late, flags)
	}
	return b.String()
}

// key returns a key that the node owns, another one for each n.
func (f *fakes) key(node, n int) string {
	return keyIn(uint16(node*cluster.Slots/len(f.nodes)), uint16((node+1)*cluster.Slots/len(f.nodes)-1), n)
}

// admits is the script's reply that so many buckets have 9 tokens left.
func admits(buckets int) string {
	one := redistest.Decided(1, 9, 0, 1000) // "$29\r\n", seven bytes of time, one result
	_, rest, _ := strings.Cut(one, "\r\n")
	return bulk(rest[:7] + strings.Repeat(strings.TrimSuffix(rest[7:], "\r\n"), buckets))
}

// denies is the reply that one bucket denies.
func denies() string { return redistest.Decided(0, 0, 1000, 1000) }

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
