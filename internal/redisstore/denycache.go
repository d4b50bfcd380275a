package redisstore

import (
	"hash/maphash"
	"math"
	"sync/atomic"
	"time"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

const (
	// denyCacheSize is how many buckets are remembered, about 2 MB of them.
	denyCacheSize = 8192
	// denyCacheWays is how many places a bucket can be at.
	denyCacheWays = 2
)

// denyCache remembers buckets that the store has just denied, so that a flood of requests that cannot be admitted does
// not reach it. Requests read it and lanes write it, none of them waits for another. Whatever gets lost on the way is
// asked of the store.
type denyCache struct {
	started time.Time
	seed    maphash.Seed
	slots   []atomic.Pointer[denial] // sets of denyCacheWays; none: the cache is off

	// busyUntil is when the last denial ends, 0 if none is known: all that a request touches then.
	busyUntil atomic.Int64
	epoch     atomic.Uint64 // denials of an older one count no more

	_             [64]byte // a flood must not take the line above from everybody
	hits          atomic.Uint64
	kept, evicted atomic.Uint64
}

// asked is when a question was sent to the store.
type asked struct {
	at    time.Duration
	epoch uint64
}

// DenyCacheStats are the numbers of the deny cache for its observers.
type DenyCacheStats struct {
	// Entries is the number of buckets known to be denied now.
	Entries int
	// Hits is the number of requests that were answered without the store. Kept counts the denials that were
	// remembered, Evicted those that had to make room for others before they ended.
	Hits, Kept, Evicted uint64
}

// newDenyCache returns a cache of size buckets; of none, it is off.
func newDenyCache(size int) *denyCache {
	return &denyCache{
		started: time.Now(), seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[denial], size),
	}
}

func (c *denyCache) now() time.Duration { return time.Since(c.started) }

// asking must be called before a question is sent whose answer learn is to hear of.
func (c *denyCache) asking() asked { return asked{at: c.now(), epoch: c.epoch.Load()} }

// empty tells whether nothing is known. It is one atomic load as long as nothing is denied.
func (c *denyCache) empty() bool {
	until := c.busyUntil.Load()
	if until == 0 {
		return true
	}
	if int64(c.now()) < until {
		return false
	}
	c.busyUntil.CompareAndSwap(until, 0)
	return true
}

// deny fills results and returns true if every charge of a request is known to be denied. Of a request that only some
// of its buckets deny it says nothing: what the others would say is for the store to know.
func (c *denyCache) deny(charges []limit.Charge, results []limit.Result) bool {
	now := c.now()
	for i := range charges {
		d := c.find(charges[i].Key)
		if d == nil || d.limit != charges[i].Limit || charges[i].Cost < 0 { // nobody denies what is given back
			return false
		}
		var known bool
		if results[i], known = d.answer(now, charges[i].Cost); !known {
			return false
		}
	}
	if len(charges) == 0 {
		return false
	}
	c.hits.Add(1)
	return true
}

// learn takes note of what the store decided, in the order of its decisions.
func (c *denyCache) learn(charges []limit.Charge, results []limit.Result, a asked) {
	if len(c.slots) == 0 || a.epoch != c.epoch.Load() {
		return
	}
	for i := range charges {
		if results[i].Allowed {
			c.forget(charges[i].Key)
			continue
		}
		c.keep(&charges[i], results[i], a)
	}
}

// forgetAll is called when the store may have become another one, or fails.
func (c *denyCache) forgetAll() { c.epoch.Add(1) }

// forget drops what is known of a bucket that was charged: it holds less than it did.
func (c *denyCache) forget(key string) {
	if c.busyUntil.Load() == 0 {
		return
	}
	set := c.set(key)
	for i := range set {
		if d := set[i].Load(); d != nil && d.key == key {
			set[i].CompareAndSwap(d, nil)
		}
	}
}

func (c *denyCache) keep(ch *limit.Charge, r limit.Result, a asked) {
	if known := c.find(ch.Key); known != nil && known.sent == a.at && known.limit == ch.Limit {
		if _, same := known.answer(a.at, ch.Cost); same {
			return // another request of the same batch was told this
		}
	}
	d, now := newDenial(ch, r, a), c.now()
	if d == nil || now >= d.until {
		return
	}
	set := c.set(d.key)
	place, least := 0, time.Duration(math.MaxInt64)
	for i := range set {
		if loss := c.loss(set[i].Load(), d.key, now); loss < least {
			place, least = i, loss
		}
	}
	if least > 0 {
		c.evicted.Add(1)
	}
	set[place].Store(d)
	c.kept.Add(1)
	c.busy(d.until)
}

// loss is for how long d would be missed if the bucket of key took its place.
func (c *denyCache) loss(d *denial, key string, now time.Duration) time.Duration {
	switch {
	case d != nil && d.key == key:
		return -1 // there must not be two of one bucket
	case d == nil || !c.counts(d, now):
		return 0
	default:
		return d.until - now
	}
}

// busy raises busyUntil.
func (c *denyCache) busy(until time.Duration) {
	for {
		old := c.busyUntil.Load()
		if old >= int64(until) || c.busyUntil.CompareAndSwap(old, int64(until)) {
			return
		}
	}
}

func (c *denyCache) find(key string) *denial {
	if len(c.slots) == 0 {
		return nil
	}
	set, epoch := c.set(key), c.epoch.Load()
	for i := range set {
		if d := set[i].Load(); d != nil && d.epoch == epoch && d.key == key {
			return d
		}
	}
	return nil
}

// set is where the bucket can be. The seed is random: nobody can choose keys that meet.
func (c *denyCache) set(key string) []atomic.Pointer[denial] {
	first := maphash.String(c.seed, key) % uint64(len(c.slots)/denyCacheWays) * denyCacheWays
	return c.slots[first : first+denyCacheWays]
}

func (c *denyCache) counts(d *denial, now time.Duration) bool {
	return d.epoch == c.epoch.Load() && now < d.until
}

func (c *denyCache) stats() DenyCacheStats {
	out := DenyCacheStats{Hits: c.hits.Load(), Kept: c.kept.Load(), Evicted: c.evicted.Load()}
	now := c.now()
	for i := range c.slots {
		if d := c.slots[i].Load(); d != nil && c.counts(d, now) {
			out.Entries++
		}
	}
	return out
}
