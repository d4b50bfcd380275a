// Package cluster routes calls to the shards of a Redis Cluster.
//
// Each master has a redisstore.Store and a failure.Breaker of its own, so that a shard that is away is answered for by
// the decision table at once while the others decide. A call whose buckets share a slot is handed on as it is, to be
// decided atomically. One whose buckets are in several slots is decided slot by slot, in parallel; when a slot denies,
// what the others admitted is given back. Nodes that do not own a slot any more are followed to the one that does;
// nothing that may have been executed is ever sent again.
//
// It knows nothing of budgets, tables or policies, nor how a shard is asked. A request never waits for the topology,
// which is found out beside it. All types are safe for concurrent use.
package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

const (
	// maxHops is how often a call is sent on from one node to another.
	maxHops = 4
	// linger is for how long a shard that no slot leads to any more still serves those who saw it before.
	linger = time.Second
	// maxStrangers are the shards opened for nodes that the topology does not show.
	maxStrangers = 16
)

// Store is a failure.Store in a Redis Cluster.
type Store struct {
	cfg      Config
	routes   atomic.Pointer[routes] // nil: there are none
	refusal  atomic.Uint32          // the failure.Cause of every call while there are none
	restless restless
	counts   counts
	alarm    chan struct{} // has a token while the topology is doubted

	refunding atomic.Int64 // refunds under way

	mu      sync.Mutex
	running context.Context // of Run; nil unless it runs
	workers sync.WaitGroup
	news    *news
	past    redisstore.DenyCacheStats // of shards that are gone, so that no counter runs backwards
}

// New returns a store. It connects when Run is called.
func New(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg.withDefaults(), alarm: make(chan struct{}, 1), news: &news{}}
	s.refusal.Store(uint32(failure.CauseNotConnected))
	if _, err := s.newShard("none:0"); err != nil {
		return nil, err
	}
	return s, nil
}

// Run finds the shards and serves until ctx ends. It returns when no goroutine of the store is left. It must be called
// once.
func (s *Store) Run(ctx context.Context) {
	s.mu.Lock()
	s.running = ctx
	s.mu.Unlock()
	a := newAskers(s)
	s.watch(ctx, a)
	s.mu.Lock()
	s.refusal.Store(uint32(failure.CauseClosed))
	s.routes.Store(nil)
	s.running = nil
	s.mu.Unlock()
	s.workers.Wait()
	a.close()
}

// Submit has the shards that own the buckets of c decide it.
func (s *Store) Submit(c *failure.Call) {
	r := s.routes.Load()
	switch {
	case r == nil:
		c.Fail(failure.Cause(s.refusal.Load()))
		return
	case len(c.Charges) == 0:
		c.Finish()
		return
	}
	slot, common := commonSlot(c.Charges)
	if !common {
		s.counts.crossSlot.Add(1)
		s.scatter(c, bySlot)
		return
	}
	c.Route = failure.Route{Slot: slot, Alone: s.restless.has(slot)}
	s.send(r, c)
}

// send hands c to the owner of its slot.
func (s *Store) send(r *routes, c *failure.Call) {
	sh := r.owner(c.Route.Slot)
	if sh == nil {
		c.Fail(failure.CauseClusterDown)
		return
	}
	sh.submit(c)
}

// suspect has the topology asked for soon. It never blocks.
func (s *Store) suspect() {
	select {
	case s.alarm <- struct{}{}:
	default:
	}
}
