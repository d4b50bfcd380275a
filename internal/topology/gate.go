package topology

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// keptAccepts bounds a gate's memory: the newest are kept.
	keptAccepts = 1 << 16
	// gateBuffer is what a gate reads at once, and what the kernel may hold for it, in bytes: what is under way in a
	// slow connection must stay small next to what a replica lacks.
	gateBuffer = 32 << 10
)

// Accept is one connection that a gate accepted.
type Accept struct {
	At time.Time
	// From is the name of the node that opened it, or Clients.
	From string
}

// gate is the door of one node: every connection to the node passes through it, but those of observers.
type gate struct {
	network  *Network
	owner    string
	upstream string
	listener net.Listener
	serving  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	conns   map[net.Conn]struct{}
	accepts []Accept
}

func newGate(n *Network, owner, upstream string) (*gate, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("topology: gate of %s: %w", owner, err)
	}
	return &gate{network: n, owner: owner, upstream: upstream, listener: l, conns: map[net.Conn]struct{}{}}, nil
}

func (g *gate) addr() string { return g.listener.Addr().String() }

func (g *gate) history() []Accept {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.accepts)
}

func (g *gate) accept() {
	for {
		c, err := g.listener.Accept()
		if err != nil {
			return
		}
		from := g.network.from(c.RemoteAddr())
		g.record(from)
		if !g.keep(c) {
			return
		}
		g.serving.Go(func() { g.serve(c, from) })
	}
}

func (g *gate) record(from string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.accepts) == keptAccepts {
		g.accepts = slices.Delete(g.accepts, 0, keptAccepts/2)
	}
	g.accepts = append(g.accepts, Accept{At: time.Now(), From: from})
}

// keep makes close end the connection too; false if the gate is closed already, and then c is as well.
func (g *gate) keep(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		_ = c.Close()
		return false
	}
	g.conns[c] = struct{}{}
	return true
}

func (g *gate) drop(c net.Conn) {
	_ = c.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
}

// serve carries one connection until either end closes it.
func (g *gate) serve(client net.Conn, from string) {
	defer g.drop(client)
	if g.network.isCut(from, g.owner) {
		g.network.await(from, g.owner)
		return // its opener has given it up, or never saw it answered
	}
	server, err := net.Dial("tcp", g.upstream)
	if err != nil {
		reset(client)
		return
	}
	if !g.keep(server) {
		return
	}
	defer g.drop(server)
	bound(client)
	bound(server)
	var up sync.WaitGroup
	up.Go(func() { g.carry(server, client, flow{from: from}) })
	g.carry(client, server, flow{from: from, to: from})
	up.Wait()
}

// flow is one direction of a connection: who opened it, and, for what comes back, who receives it.
type flow struct{ from, to string }

// carry copies until src ends, and then ends both. What src sends into a cut stays in the buffers, its end included.
func (g *gate) carry(dst, src net.Conn, f flow) {
	buf := make([]byte, gateBuffer)
	for {
		piece, pause := g.measure(f)
		n, err := src.Read(buf[:piece])
		if f.to != "" {
			g.network.pause(g.network.delay(g.owner))
		}
		if !g.network.await(f.from, g.owner) {
			break
		}
		if _, werr := dst.Write(buf[:n]); err != nil || werr != nil {
			break
		}
		g.network.pause(time.Duration(n) * pause)
	}
	_ = dst.Close()
	_ = src.Close()
}

// measure is how much to read at once, and how long each byte of it takes.
func (g *gate) measure(f flow) (piece int, perByte time.Duration) {
	rate := 0
	if f.to != "" {
		rate = g.network.rate(f.to)
	}
	if rate == 0 {
		return gateBuffer, 0
	}
	return min(gateBuffer, max(1, rate/20)), time.Second / time.Duration(rate)
}

func (g *gate) close() error {
	err := g.listener.Close()
	g.mu.Lock()
	g.closed = true
	for c := range g.conns {
		_ = c.Close()
	}
	g.mu.Unlock()
	g.serving.Wait()
	return err
}

// reset ends a connection as the kernel of a machine without the server would, nearly: it was accepted before.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
}

// bound keeps the kernel from hiding a slow connection in its buffers.
func bound(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetReadBuffer(gateBuffer)
		_ = t.SetWriteBuffer(gateBuffer)
	}
}
