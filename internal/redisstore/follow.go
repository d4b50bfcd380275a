package redisstore

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// Mover is a Resolver whose master moves from server to server. None of its methods but Resolve may block.
type Mover interface {
	Resolver
	// Moved returns a channel that is closed when Resolve names another address than it did when Moved was called.
	Moved() <-chan struct{}
	// Suspect tells that the master did what one does that is no longer master: it says READONLY, or is gone. The
	// resolver looks again at once, unless it has just looked.
	Suspect(c failure.Cause)
	// Replicas are the servers that may become master, where the script is loaded in advance.
	Replicas() []Target
}

const (
	// haste is how soon a new master that is no use yet is tried again. Jittered. The requests of a second or two have
	// failed already, and nobody else can be asked.
	haste = 25 * time.Millisecond
	// spread is how long after the news a process dials the new master at the latest, so that a fleet does not in one
	// instant.
	spread = 10 * time.Millisecond
	// preloadInterval is how often the script is brought to the replicas. Jittered. A master that lacks it gets it
	// before it is asked, so this saves one round trip in a failover, no more.
	preloadInterval = 10 * time.Second
)

// follow goes after the master until ctx ends: it opens a connection to each new one, and then has the lanes leave the
// old one, whatever they wait for there.
func (s *Store) follow(ctx context.Context, m Mover) {
	for ctx.Err() == nil {
		moved := m.Moved()
		s.pursue(ctx, moved)
		select {
		case <-moved:
		case <-ctx.Done():
		}
	}
}

// pursue opens a connection to the master, unless the lanes are there already or the master moves again.
func (s *Store) pursue(ctx context.Context, moved <-chan struct{}) {
	pause := rand.N(spread)
	for {
		select {
		case <-time.After(pause):
		case <-moved:
			return
		case <-ctx.Done():
			return
		}
		target, err := s.resolve(ctx)
		if err == nil && s.herald(ctx, target) == nil {
			return
		}
		pause = Jitter(s.cfg.BackoffMin)
	}
}

// herald opens a connection to a master that no lane knows yet, and begins its era.
func (s *Store) herald(ctx context.Context, target Target) error {
	current := s.era.Load()
	if target.Address == current.address {
		return nil
	}
	if err := s.dials.wait(ctx, target.Address); err != nil {
		return err
	}
	start := time.Now()
	c, err := open(ctx, target, s)
	if err != nil {
		s.dials.failed(target.Address)
		cause := classify(err)
		s.note(cause, err)
		s.cfg.Hooks.dialed(time.Since(start), cause)
		return err
	}
	if next := s.adopt(current, target.Address); next.address == target.Address {
		next.give(c)
		return nil
	}
	c.close()
	return errResolve
}

// adopt begins the era of the master at address if old is the current one, and returns the era that is current then.
func (s *Store) adopt(old *era, address string) *era {
	if old.address == address {
		return s.era.Load()
	}
	next := newEra(address)
	if old.address == "" { // the first master that ever was is no news
		next.vouched.Store(true)
	}
	if !s.era.CompareAndSwap(old, next) {
		return s.era.Load()
	}
	if old.address != "" {
		s.dialing(address)
		s.denials.forgetAll()
		old.finish(s.cfg.Budget)
		s.cfg.Hooks.moved(old.address, address)
	}
	return next
}

// suspect has the resolver look again, if the master can move at all.
func (s *Store) suspect(c failure.Cause) {
	if m, ok := s.resolver.(Mover); ok {
		m.Suspect(c)
	}
}

// preload brings the script to the replicas now and then.
func (s *Store) preload(ctx context.Context, m Mover) {
	timer := time.NewTimer(Jitter(haste))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		known := m.Replicas()
		for _, replica := range known {
			s.loadAt(ctx, replica)
		}
		timer.Reset(Jitter(preloadInterval))
		if len(known) == 0 { // none is known yet
			timer.Reset(Jitter(s.cfg.CheckInterval))
		}
	}
}

// loadAt brings the script to one server. A replica that does not take it, or is not there, fails no request: whoever
// becomes master is given the script before it is asked.
func (s *Store) loadAt(ctx context.Context, replica Target) {
	client := NewClient(replica, s.cfg.DialTimeout)
	defer func() { _ = client.Close() }()
	if err := client.ScriptLoad(ctx, s.script).Err(); err != nil && ctx.Err() == nil {
		s.note(classify(err), err)
	}
}
