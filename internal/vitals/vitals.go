// Package vitals reads how Redis servers are from their INFO: replication, memory, connections, forks, slow commands.
//
// It asks seldom, off the request path and over connections of its own, and judges nothing. The account needs +info,
// and +slowlog|len for the length of the slow log; what it may not ask for stays unknown. A Poller may be used by
// several goroutines at once.
package vitals

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
)

// Config says whom to ask.
type Config struct {
	// Masters returns the servers that decide now, off the request path.
	Masters func() []redisstore.Target
	// Interval is how often they are asked. Jittered. Required.
	Interval time.Duration
	// Timeout bounds each question. Default 250 ms.
	Timeout time.Duration
}

// Validate reports what is missing.
func (c Config) Validate() error {
	if c.Masters == nil || c.Interval <= 0 || c.Timeout < 0 {
		return errors.New("vitals: whom to ask, and an interval > 0, are required")
	}
	return nil
}

// Poller keeps the newest vitals.
type Poller struct {
	cfg Config

	mu     sync.Mutex
	latest Summary
	failed uint64
}

// New returns a poller that has not asked yet.
func New(cfg Config) (*Poller, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 250 * time.Millisecond
	}
	return &Poller{cfg: cfg}, nil
}

// Run asks until ctx ends.
func (p *Poller) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		p.poll(ctx)
		timer.Reset(p.cfg.Interval - rand.N(p.cfg.Interval/4+1)) // a fleet does not ask in step
	}
}

// Latest is the newest answer, and how often a server could not be asked.
func (p *Poller) Latest() (latest Summary, failed uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.latest, p.failed
}

// poll asks every server at once: one that hangs does not hold up the others.
func (p *Poller) poll(ctx context.Context) {
	targets := p.cfg.Masters()
	answers := make([]*Server, len(targets))
	var asking sync.WaitGroup
	for i, target := range targets {
		asking.Go(func() { answers[i] = p.ask(ctx, target) })
	}
	asking.Wait()
	sum := summarize(answers)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed += uint64(len(targets) - sum.Servers)
	if sum.Servers > 0 {
		sum.At = time.Now()
		p.latest = sum
	}
}

// ask returns nil if the server does not tell.
func (p *Poller) ask(ctx context.Context, target redisstore.Target) *Server {
	client := redisstore.NewClient(target, p.cfg.Timeout)
	defer func() { _ = client.Close() }()
	text, err := client.Info(ctx).Result()
	if err != nil {
		return nil
	}
	s := Parse(text)
	if s.SlowCommands, err = client.Do(ctx, "slowlog", "len").Int64(); err != nil {
		s.SlowCommands = 0 // it may not be asked for
	}
	return &s
}
