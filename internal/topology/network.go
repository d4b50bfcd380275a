package topology

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Clients stands for everything that connects from outside of the set, the service among it, in Network's methods.
const Clients = "clients"

// Network is what lies between the nodes of a gated set, and between them and their clients. It starts whole.
//
// A cut swallows: what is sent waits, and arrives after Heal on connections that were there before the cut, as TCP
// would deliver it late. A connection opened through a cut is accepted, never answered, and closed by Heal.
type Network struct {
	mu      sync.Mutex
	names   map[string]string // of nodes, by source address
	cuts    []cut
	rates   map[string]int           // bytes per second, by node
	delays  map[string]time.Duration // of answers, by node
	changed chan struct{}            // closed when anything above changes, or the network closes
	closed  bool
	gates   []*gate
}

// cut is two sides that do not hear each other.
type cut struct{ a, b []string }

func newNetwork() *Network {
	return &Network{
		names: map[string]string{}, rates: map[string]int{}, delays: map[string]time.Duration{},
		changed: make(chan struct{}),
	}
}

// Partition cuts every connection, old and new, in both directions, between a node of a and a node of b; one that is
// named in neither still reaches everybody. It adds to the cuts that are there. Names are those of nodes, or Clients.
func (n *Network) Partition(a, b []string) error {
	return n.change(slices.Concat(a, b), func() { n.cuts = append(n.cuts, cut{a: a, b: b}) })
}

// Isolate cuts the nodes named off from all others and, unless named too, from Clients. They reach each other.
func (n *Network) Isolate(side ...string) error {
	return n.Partition(side, n.others(side))
}

// Heal ends all cuts. Rates and delays stay.
func (n *Network) Heal() error {
	return n.change(nil, func() { n.cuts = nil })
}

// Throttle limits what arrives on each connection that the node has opened, its replication link above all, to that
// many bytes per second; 0 ends the limit. Connections to the node, Sentinels' for one, stay as fast as they are.
func (n *Network) Throttle(node string, bytesPerSecond int) error {
	if bytesPerSecond < 0 {
		return errors.New("topology: a rate must not be negative")
	}
	return n.change([]string{node}, func() { n.rates[node] = bytesPerSecond })
}

// Delay holds back whatever the node answers, to everybody, for at least d and at most twice that; 0 ends it. What the
// node is asked, and what it asks others, arrives as before.
func (n *Network) Delay(node string, d time.Duration) error {
	if d < 0 {
		return errors.New("topology: a delay must not be negative")
	}
	return n.change([]string{node}, func() { n.delays[node] = d })
}

func (n *Network) change(names []string, apply func()) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.gates) == 0 {
		return errors.New("topology: the set has no gates: set Config.Gated")
	}
	for _, name := range names {
		if name != Clients && !n.knows(name) {
			return fmt.Errorf("topology: no node is called %q", name)
		}
	}
	apply()
	n.announce()
	return nil
}

func (n *Network) knows(name string) bool {
	return slices.ContainsFunc(n.gates, func(g *gate) bool { return g.owner == name })
}

func (n *Network) announce() {
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *Network) others(side []string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []string{Clients}
	for _, g := range n.gates {
		all = append(all, g.owner)
	}
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(side, name) })
}

// from names who connects.
func (n *Network) from(addr net.Addr) string {
	host, _, _ := net.SplitHostPort(addr.String())
	n.mu.Lock()
	defer n.mu.Unlock()
	if name, ok := n.names[host]; ok {
		return name
	}
	return Clients
}

// isCut is whether a and b do not hear each other now.
func (n *Network) isCut(a, b string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cutLocked(a, b)
}

func (n *Network) cutLocked(a, b string) bool {
	return slices.ContainsFunc(n.cuts, func(c cut) bool {
		return slices.Contains(c.a, a) && slices.Contains(c.b, b) ||
			slices.Contains(c.a, b) && slices.Contains(c.b, a)
	})
}

// await waits until a and b hear each other; false if the network closes first.
func (n *Network) await(a, b string) bool {
	for {
		n.mu.Lock()
		blocked, closed, changed := n.cutLocked(a, b), n.closed, n.changed
		n.mu.Unlock()
		if closed {
			return false
		}
		if !blocked {
			return true
		}
		<-changed
	}
}

// rate is what the node may receive in bytes per second; 0 is no limit.
func (n *Network) rate(node string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.rates[node]
}

// delay is how long the node's answers are held back.
func (n *Network) delay(node string) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.delays[node]
}

// pause waits for d, or until anything changes.
func (n *Network) pause(d time.Duration) {
	if d == 0 {
		return
	}
	n.mu.Lock()
	changed := n.changed
	n.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	}
}

// add puts a gate in front of the address.
func (n *Network) add(owner, upstream string) (*gate, error) {
	g, err := newGate(n, owner, upstream)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.gates = append(n.gates, g)
	n.mu.Unlock()
	g.serving.Go(g.accept)
	return g, nil
}

func (n *Network) call(source, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[source] = name
}

// close ends every gate and waits for it.
func (n *Network) close() error {
	n.mu.Lock()
	gates := n.gates
	if !n.closed {
		n.closed = true
		n.announce()
	}
	n.mu.Unlock()
	errs := make([]error, len(gates))
	for i, g := range gates {
		errs[i] = g.close()
	}
	return errors.Join(errs...)
}
