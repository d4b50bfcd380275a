package redistest

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// Proxy is the network between a client and a server, on a loopback port of its own. It starts healthy.
type Proxy struct {
	listener      net.Listener
	network, addr string
	serving       sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	weather weather
	changed chan struct{} // closed when the weather changes
	pairs   map[net.Conn]net.Conn
	dials   []time.Time // of everybody who was accepted
}

// weather is how the proxy treats what passes through it.
type weather struct {
	delay     time.Duration // before each piece of an answer
	drip      time.Duration // between single bytes of an answer; 0: whole pieces
	blackhole bool          // nothing passes, in either direction
}

// NewProxy starts a proxy in front of the address. Cleanup stops it.
func NewProxy(t testing.TB, network, addr string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		listener: l, network: network, addr: addr,
		changed: make(chan struct{}), pairs: map[net.Conn]net.Conn{},
	}
	p.serving.Go(p.accept)
	t.Cleanup(p.stop)
	return p
}

// Addr is the host:port that clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Delay holds every answer back for d.
func (p *Proxy) Delay(d time.Duration) { p.set(weather{delay: d}) }

// Drip hands answers on byte by byte, one each interval.
func (p *Proxy) Drip(interval time.Duration) { p.set(weather{drip: interval}) }

// Blackhole swallows everything in both directions while every connection, old or new, stays open: the half-open
// connection of a peer that lost its power.
func (p *Proxy) Blackhole() { p.set(weather{blackhole: true}) }

// Heal lets everything pass again. What was swallowed stays lost, so connections of that time are of no more use.
func (p *Proxy) Heal() { p.set(weather{}) }

// Cut closes every connection there is. New ones are welcome.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client, server := range p.pairs {
		_ = client.Close()
		_ = server.Close()
	}
}

// Conns is the number of open connections.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pairs)
}

// Dials are the times at which connections were accepted, those that came to nothing among them.
func (p *Proxy) Dials() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.dials)
}

func (p *Proxy) set(w weather) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather = w
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) now() (weather, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.weather, p.changed
}

func (p *Proxy) stop() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.set(weather{})
	p.Cut()
	p.serving.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.note()
		server, err := net.Dial(p.network, p.addr)
		if err != nil || !p.add(client, server) {
			_ = client.Close()
			continue
		}
		p.serving.Go(func() { p.carry(client, server) })
	}
}

func (p *Proxy) note() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dials = append(p.dials, time.Now())
}

func (p *Proxy) add(client, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = server.Close()
		return false
	}
	p.pairs[client] = server
	return true
}

// carry serves one connection until either end closes it.
func (p *Proxy) carry(client, server net.Conn) {
	var up sync.WaitGroup
	up.Go(func() {
		p.copy(server, client, func(dst io.Writer, b []byte, _ weather) error {
			_, err := dst.Write(b)
			return err
		})
		_ = server.Close()
		_ = client.Close()
	})
	p.copy(client, server, p.answer)
	_ = client.Close()
	_ = server.Close()
	up.Wait()
	p.mu.Lock()
	delete(p.pairs, client)
	p.mu.Unlock()
}

func (p *Proxy) copy(dst io.Writer, src io.Reader, pass func(io.Writer, []byte, weather) error) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		w, _ := p.now()
		if w.blackhole {
			continue
		}
		if pass(dst, buf[:n], w) != nil {
			return
		}
	}
}

// answer hands a piece of an answer on, as slowly as the weather says.
func (p *Proxy) answer(dst io.Writer, b []byte, w weather) error {
	p.pause(w.delay)
	if w.drip == 0 {
		_, err := dst.Write(b)
		return err
	}
	for i := range b {
		if _, err := dst.Write(b[i : i+1]); err != nil {
			return err
		}
		p.pause(w.drip)
	}
	return nil
}

// pause waits for d, or until the weather changes.
func (p *Proxy) pause(d time.Duration) {
	if d == 0 {
		return
	}
	_, changed := p.now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	}
}
