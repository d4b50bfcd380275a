// Package memstore decides calls in the memory of this process: the store of a service that runs without Redis.
//
// It runs the algorithms of pkg/limit on a bounded number of buckets. Its limits hold for one process only, and a
// restart forgets them. It knows nothing of breakers, budgets or policies, needs no goroutine, and never fails a
// call. All types are safe for concurrent use.
package memstore

import (
	"errors"
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// DefaultMaxBuckets bounds a store at roughly 250 MB with keys of 80 bytes.
const DefaultMaxBuckets = 1_000_000

// maxShards is the number of bits in the set of shards that one request locks.
const maxShards = 64

// Config tunes a Store. Zero values mean the defaults.
type Config struct {
	// MaxBuckets is how many buckets are kept at most. Beyond it the one that is nearest to full again makes room,
	// which forgets the least. Default DefaultMaxBuckets.
	MaxBuckets int
}

// Validate reports every setting that is out of range.
func (c Config) Validate() error {
	if c.MaxBuckets < 0 {
		return errors.New("memstore: max buckets must be > 0")
	}
	return nil
}

// Store keeps buckets. Its clock is the wall clock at the time of New, moved on by the monotonic clock: it never steps
// back.
type Store struct {
	start  time.Time
	seed   maphash.Seed
	shards []shard

	expired, evicted atomic.Uint64
}

// Stats are the numbers of a store for its observers.
type Stats struct {
	// Buckets is the number of buckets kept now, those that are full again but not yet swept among them.
	Buckets int
	// Expired counts the buckets that were dropped because they were full again, which loses nothing.
	Expired uint64
	// Evicted counts those that were dropped for want of room before that: each one starts full the next time.
	Evicted uint64
}

// New returns an empty store.
func New(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	most := cfg.MaxBuckets
	if most == 0 {
		most = DefaultMaxBuckets
	}
	s := &Store{start: time.Now(), seed: maphash.MakeSeed(), shards: make([]shard, shardCount(most))}
	for i := range s.shards {
		s.shards[i] = shard{buckets: map[string]*bucket{}, most: most / len(s.shards)}
	}
	return s, nil
}

// shardCount is a power of two that leaves each shard enough room for the buckets to spread evenly.
func shardCount(most int) int {
	const roomy = 1024
	return min(maxShards, 1<<(bits.Len(uint(most/roomy|1))-1))
}

// Submit decides c before it returns.
func (s *Store) Submit(c *failure.Call) {
	s.decide(c.Charges, c.Results)
	c.Finish()
}

// Stats returns the numbers as they stand.
func (s *Store) Stats() Stats {
	out := Stats{Expired: s.expired.Load(), Evicted: s.evicted.Load()}
	for i := range s.shards {
		out.Buckets += s.shards[i].len()
	}
	return out
}

// now is in microseconds since the epoch.
func (s *Store) now() int64 {
	return s.start.UnixMicro() + time.Since(s.start).Microseconds()
}

// pending is one charge between the two phases of a decision.
type pending struct {
	shard  *shard
	bucket *bucket // nil: there is none
	state  limit.State
	wait   int64
}

// decide charges all buckets or none, like decide.lua: it reads and computes first, and writes only if all admit.
func (s *Store) decide(charges []limit.Charge, results []limit.Result) {
	var few [8]pending // what nearly every request needs, on the stack
	work := few[:0]
	var shards uint64
	for i := range charges {
		n := maphash.String(s.seed, charges[i].Key) & uint64(len(s.shards)-1)
		shards |= 1 << n
		work = append(work, pending{shard: &s.shards[n]})
	}
	s.lock(shards)
	defer s.unlock(shards)
	now := s.now()
	admitted := true
	for i := range work {
		work[i].read(&charges[i], now)
		admitted = admitted && work[i].wait == 0
	}
	for i := range work {
		p, c := &work[i], &charges[i]
		if admitted && c.Cost > 0 {
			p.state = c.Limit.Spend(p.state, c.Cost)
			s.write(work, i, c, now)
		}
		results[i] = c.Limit.Report(p.state, now, p.wait)
	}
}

// read brings the bucket of a charge to now and computes its wait.
func (p *pending) read(c *limit.Charge, now int64) {
	p.bucket = p.shard.buckets[c.Key]
	var kept limit.State
	if b := p.bucket; b != nil && b.full > now && b.algorithm == c.Limit.Algorithm {
		kept = b.state
	}
	p.state = c.Limit.Advance(kept, now)
	p.wait = c.Limit.Wait(p.state, now, c.Cost)
}

// write keeps the state of charge i.
func (s *Store) write(work []pending, i int, c *limit.Charge, now int64) {
	p := &work[i]
	full := now + lifetime(c.Limit.Reset(p.state, now))
	if b := p.bucket; b != nil {
		b.state, b.algorithm, b.full = p.state, c.Limit.Algorithm, full
		p.shard.moved(b)
		return
	}
	gone := p.shard.makeRoom(now, work)
	s.expired.Add(gone.expired)
	s.evicted.Add(gone.evicted)
	p.bucket = &bucket{key: c.Key, state: p.state, algorithm: c.Limit.Algorithm, full: full}
	p.shard.add(p.bucket)
}

// lifetime is for how long a state is kept whose bucket is full after reset microseconds: to the next whole
// millisecond, as Redis does.
func lifetime(reset int64) int64 {
	const forever, milli = int64(limit.Forever / time.Microsecond), 1000
	return (min(reset, forever) + milli - 1) / milli * milli
}

// lock takes the shards of a request in order, so that no two requests wait for each other in a circle.
func (s *Store) lock(shards uint64) {
	for set := shards; set != 0; set &= set - 1 {
		s.shards[bits.TrailingZeros64(set)].mu.Lock()
	}
}

func (s *Store) unlock(shards uint64) {
	for set := shards; set != 0; set &= set - 1 {
		s.shards[bits.TrailingZeros64(set)].mu.Unlock()
	}
}
