// Package redisstore decides calls in Redis, over a few pipelined connections that requests never wait on.
//
// Calls go into one bounded queue. A few lanes, each one goroutine with one connection, take whatever has gathered,
// send it in one pipeline and hand the answers out: batching follows the load, without a timer. A lane that is stuck
// takes nothing, so the others carry on. Connections are opened, and proved to work, off the request path; a call
// never waits for a dial, but for the very first one.
//
// A bucket that has just denied is remembered for as long as it must, a second at most, and answers for itself then: a
// flood of requests that cannot be admitted does not reach Redis (docs/decisions/0008).
//
// It knows nothing of budgets, tables or policies. What happens to the store is told to a Health (the breaker) as
// evidence, to Hooks as numbers, and to each call as a cause. All types are safe for concurrent use.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/scripts"
)

// Health is told what is found out about the store; *failure.Breaker implements it. Its methods must not block.
type Health interface {
	// Sent tells that a round trip begins; exactly one of Answered and Alive ends it.
	Sent() failure.Trip
	// Answered ends a round trip of decisions: CauseNone if every reply was genuine, else what went wrong.
	Answered(t failure.Trip, c failure.Cause)
	// Alive ends a round trip that succeeded and decided nothing, such as a ping.
	Alive(t failure.Trip)
	// Failed tells of a failure outside any round trip: no connection is left, and none could be opened.
	Failed(c failure.Cause)
	// Proved tells that a connection has shown that the store works.
	Proved()
	// Moved tells the same of another master than before: nothing that was found out about that one counts.
	Moved()
	// State is that of the breaker.
	State() failure.State
}

// Store is a failure.Store in Redis.
type Store struct {
	resolver Resolver
	health   Health
	cfg      Config
	script   string
	sha      string

	queue    *queue
	dials    *backoff
	reloads  reloads
	denials  *denyCache
	inFlight atomic.Int64
	era      atomic.Pointer[era]

	mu        sync.Mutex
	connected int
	address   string
	last      LastError
}

// LastError is the newest trouble with the store, for people to read. It holds no credentials.
type LastError struct {
	Cause failure.Cause
	Text  string
	At    time.Time
}

// Stats are the numbers of a store for its observers.
type Stats struct {
	// Lanes is how many there are, Connected how many of them serve.
	Lanes, Connected int
	// Queued is the number of calls that wait for a lane, InFlight of those sent and not yet answered.
	Queued, InFlight int
	// Address is where the newest connection leads, without credentials; empty before the first dial.
	Address string
	// LastError is the newest trouble; its Cause is CauseNone if there was none.
	LastError LastError
	// DenyCache is all zero while the cache is off.
	DenyCache DenyCacheStats
}

// New returns a store whose lanes connect where resolver says. It connects when Run is called.
func New(resolver Resolver, health Health, cfg Config) (*Store, error) {
	if resolver == nil || health == nil {
		return nil, errors.New("redisstore: a store needs a resolver and a health")
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	script := scripts.Decide()
	size := denyCacheSize
	if cfg.NoDenyCache {
		size = 0
	}
	s := &Store{
		resolver: resolver, health: health, cfg: cfg, script: script, sha: sha1Hex(script),
		queue: newQueue(cfg.QueueSize), dials: newBackoff(cfg.BackoffMin, cfg.BackoffMax),
		denials: newDenyCache(size),
	}
	s.era.Store(newEra(""))
	return s, nil
}

// Submit queues c. It fails it at once if the queue is full, or if there is no connection and an attempt to get one
// has failed. It finishes it at once if the store has just said that every bucket of it denies.
func (s *Store) Submit(c *failure.Call) {
	if s.Denies(c.Charges, c.Results) {
		c.Finish()
		return
	}
	cause := s.queue.push(c)
	if cause == failure.CauseNone {
		return
	}
	if cause == failure.CauseQueueFull {
		s.cfg.Hooks.dropped(cause, 1)
	}
	c.Fail(cause)
}

// Denies fills results and returns true if the store has just said that every bucket of charges denies, so that asking
// again would bring nothing new.
func (s *Store) Denies(charges []limit.Charge, results []limit.Result) bool {
	return !s.denials.empty() && s.asks() && s.denials.deny(charges, results)
}

// asks tells whether a call would reach the store. If not, what the store said before is no answer: the request's own
// fail mode decides it. Nor is it one to a request that must find out whether the store works again.
func (s *Store) asks() bool {
	return s.health.State() == failure.Closed && s.queue.refusal() == failure.CauseNone
}

// Run connects the lanes and serves until ctx ends. Then it fails what is queued, waits for what is in flight, and
// returns when no goroutine of the store is left. It must be called once.
func (s *Store) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range s.cfg.Lanes {
		l := &lane{store: s}
		workers.Go(func() { l.run(ctx) })
	}
	if m, ok := s.resolver.(Mover); ok {
		workers.Go(func() { s.follow(ctx, m) })
		workers.Go(func() { s.preload(ctx, m) })
	}
	<-ctx.Done()
	failAll(s.queue.close(), failure.CauseClosed)
	workers.Wait()
	s.era.Load().finish(0)
}

// Stats returns the numbers as they stand.
func (s *Store) Stats() Stats {
	denials := s.denials.stats()
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Lanes: s.cfg.Lanes, Connected: s.connected, Queued: s.queue.len(), InFlight: int(s.inFlight.Load()),
		Address: s.address, LastError: s.last, DenyCache: denials,
	}
}

// up tells that a lane serves.
func (s *Store) up() {
	s.denials.forgetAll() // the server may be another one, or empty
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected++
	s.queue.open()
}

// down tells that a lane no longer serves.
func (s *Store) down(c failure.Cause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected--
	s.refuse(c)
}

// noConnection tells that a lane could not be connected. That is evidence against the store only if no other lane
// serves: a server without room for one more, or a new password that is wrong, must not shut one that works.
func (s *Store) noConnection(c failure.Cause) {
	s.mu.Lock()
	s.refuse(c)
	stranded := s.connected == 0
	s.mu.Unlock()
	if stranded { // told outside the lock, for whoever is told may ask for Stats
		s.health.Failed(c)
	}
}

// refuse fails what is queued, and all that comes, if no lane is left to serve it.
func (s *Store) refuse(c failure.Cause) {
	if s.connected == 0 {
		failAll(s.queue.refuse(c), c)
	}
}

// resolve asks where the master is, and for no longer than a dial may take: while nobody knows, requests are to be
// answered by their fail modes and not to wait.
func (s *Store) resolve(ctx context.Context) (Target, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.DialTimeout)
	defer cancel()
	target, err := s.resolver.Resolve(ctx)
	if err != nil {
		return Target{}, fmt.Errorf("%w: %w", errResolve, err)
	}
	return target, nil
}

func (s *Store) dialing(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.address = address
}

func (s *Store) note(c failure.Cause, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = LastError{Cause: c, Text: err.Error(), At: time.Now()}
}

func failAll(calls []*failure.Call, c failure.Cause) {
	for _, call := range calls {
		call.Fail(c)
	}
}
