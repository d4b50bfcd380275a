package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// shard is one master: its store, and the breaker that is its alone.
type shard struct {
	address string
	store   *redisstore.Store
	breaker *failure.Breaker
	opened  time.Time
	proof   proof
	close   context.CancelFunc
}

// location is the Resolver of a shard: a master that moves is another shard.
type location struct {
	cluster *Store
	address string
}

// Resolve reads the credentials anew.
func (l location) Resolve(context.Context) (redisstore.Target, error) {
	return l.cluster.cfg.Access.Target(l.address)
}

// Moved never happens.
func (l location) Moved() <-chan struct{} { return nil }

// Suspect has the topology asked for.
func (l location) Suspect(failure.Cause) { l.cluster.suspect() }

// Replicas are none: whoever is promoted is a new shard, whose lanes bring the script along before they serve.
func (l location) Replicas() []redisstore.Target { return nil }

// newShard returns a shard that does not run yet.
func (s *Store) newShard(address string) (*shard, error) {
	sh := &shard{address: address, opened: time.Now()}
	breaking, told := s.cfg.Breaker, s.cfg.Breaker.OnTransition
	breaking.OnTransition = func(t failure.Transition) {
		if t.To == failure.Open {
			s.suspect()
		}
		if told != nil {
			told(t)
		}
	}
	storing := s.cfg.Store
	storing.ProofKey = func() string { return s.proofKey(sh) }
	storing.Redirect = func(c *failure.Call, to redisstore.Redirection) { s.redirect(sh, c, to) }
	var err error
	if sh.breaker, err = failure.NewBreaker(breaking); err != nil {
		return nil, err
	}
	if sh.store, err = redisstore.New(location{s, address}, sh.breaker, storing); err != nil {
		return nil, err
	}
	return sh, nil
}

// open returns a running shard. s.mu must be held, and the cluster run.
func (s *Store) open(address string) *shard {
	sh, err := s.newShard(address)
	if err != nil {
		panic(fmt.Sprintf("cluster: a configuration that New accepted: %v", err)) // impossible
	}
	var ctx context.Context
	ctx, sh.close = context.WithCancel(s.running)
	s.workers.Go(func() { sh.breaker.Run(ctx) })
	s.workers.Go(func() { sh.store.Run(ctx) })
	return sh
}

// retire closes a shard that no slot leads to any more, when those who still saw it have their answers. s.mu must be
// held.
func (s *Store) retire(sh *shard) {
	s.past = sum(redisstore.Stats{DenyCache: s.past}, sh.store.Stats()).DenyCache
	s.past.Entries = 0
	ctx := s.running
	s.workers.Go(func() {
		defer sh.close()
		select {
		case <-time.After(linger):
		case <-ctx.Done():
		}
	})
}

// submit has the shard decide c if its breaker lets it.
func (sh *shard) submit(c *failure.Call) {
	if sh.breaker.State() == failure.Closed {
		sh.store.Submit(c)
		return
	}
	permit, refused := sh.breaker.Admit()
	if refused != failure.CauseNone {
		c.Fail(refused)
		return
	}
	sh.probe(c, permit)
}

// probe has a part of its own decided in place of c, so that the breaker hears how the request with its permit ended.
func (sh *shard) probe(c *failure.Call, permit failure.Permit) {
	part := failure.NewPart(c.Charges, c.Deadline, func(p *failure.Call) {
		sh.breaker.Settle(permit, evidence(p))
		conclude(c, p)
	})
	part.Route = c.Route
	sh.store.Submit(part)
}

// evidence is what a probe says about the shard that let it through. One that was sent elsewhere says nothing.
func evidence(p *failure.Call) failure.Cause {
	switch p.Cause() {
	case failure.CauseMoved, failure.CauseTryAgain, failure.CauseClusterDown:
		return failure.CauseCanceled
	default:
	}
	if p.Route.Hops > 0 {
		return failure.CauseCanceled
	}
	return p.Cause()
}

// conclude completes c as its only part was.
func conclude(c, part *failure.Call) {
	switch {
	case part.Bug() != nil:
		c.Panic(part.Bug())
	case part.Cause() != failure.CauseNone:
		c.Fail(part.Cause())
	default:
		copy(c.Results, part.Results)
		c.At = part.At
		c.Finish()
	}
}
