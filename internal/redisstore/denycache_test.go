package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// model is a store that decides by pkg/limit, at the time of the bubble it lives in.
type model map[string]limit.State

func (m model) take(ch limit.Charge) (r limit.Result) {
	m[ch.Key], r = ch.Limit.Take(m[ch.Key], time.Now().UnixMicro(), ch.Cost)
	return r
}

// says is what the model would say, without saying it.
func (m model) says(ch limit.Charge) limit.Result {
	_, r := ch.Limit.Take(m[ch.Key], time.Now().UnixMicro(), ch.Cost)
	return r
}

// randomLimit has every proportion of capacity, refill and period that matters, from a few microseconds to a year.
func randomLimit(r *rand.Rand) limit.Limit {
	scale := func(most float64) int64 { return 1 + int64(most*r.Float64()*r.Float64()*r.Float64()) }
	for {
		l := limit.NewSlidingWindow(scale(30), time.Duration(scale(5e6))*time.Microsecond)
		if r.IntN(3) > 0 {
			l = limit.NewTokenBucket(scale(30*limit.Micro), limit.Rate{Micro: scale(5e6), Period: scale(5e6)})
		}
		if r.IntN(20) == 0 {
			l = limit.NewTokenBucket(scale(limit.MaxTokens*limit.Micro), limit.Rate{Micro: scale(5e6), Period: scale(limit.MaxPeriod)})
		}
		if l.Validate() == nil {
			return l
		}
	}
}

// somewhere is a time somewhere in the life of a denial, more often near its end than anywhere else.
func somewhere(r *rand.Rand, retry time.Duration) time.Duration {
	whole := min(max(retry, 10*time.Microsecond), 2*redisstore.DenialLife)
	if r.IntN(3) == 0 {
		return max(0, whole+time.Duration(r.IntN(5)-3)*time.Microsecond)
	}
	return time.Duration(r.Int64N(int64(whole + whole/8)))
}

// knowable tells whether it is known what the store will say until the denial ends: always of a token bucket.
func knowable(ch limit.Charge, r limit.Result) bool {
	return r.RetryAfter > 0 && r.ResetAfter < limit.Forever &&
		(ch.Limit.Algorithm == limit.TokenBucket || r.Remaining == max(ch.Cost, 1)-1)
}

// TestDenyCache_SaysWhatTheStoreWouldSay holds every answer against pkg/limit at the same microsecond. What a reply
// leaves open of a token bucket is less than it regains in one: it shows in how much remains, and in when another cost
// fits, never in when the same cost fits or the bucket is full.
func TestDenyCache_SaysWhatTheStoreWouldSay(t *testing.T) {
	answers, others := 0, 0
	for seed := range uint64(6000) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 8))
			m, cache := model{}, redisstore.NewDenyCache(16)
			ch := limit.Charge{Key: "k", Limit: randomLimit(r)}
			denied := int64(-1)
			var retry time.Duration
			for range 60 {
				time.Sleep(somewhere(r, retry).Truncate(time.Microsecond))
				ch.Cost = r.Int64N(min(ch.Limit.Tokens(), 12) + 2)
				if r.IntN(2) == 0 && denied >= 0 {
					ch.Cost = denied
				}
				charges, got := []limit.Charge{ch}, make([]limit.Result, 1)
				if redisstore.Empty(cache) || !redisstore.Deny(cache, charges, got) {
					asked := redisstore.Asking(cache)
					got[0] = m.take(ch)
					retry = got[0].RetryAfter
					if !got[0].Allowed {
						denied = ch.Cost
					}
					redisstore.Learn(cache, charges, got, asked)
					if !knowable(ch, got[0]) {
						continue
					}
					if !redisstore.Deny(cache, charges, got) {
						t.Fatalf("seed %d: of %+v the store said %+v, which was not kept", seed, ch, got[0])
					}
				}
				answers++
				if ch.Cost != denied {
					others++
				}
				want := m.says(ch)
				_, next := ch.Limit.Take(m[ch.Key], time.Now().UnixMicro()+1, ch.Cost)
				if ch.Limit.Algorithm == limit.TokenBucket && got[0].Remaining == next.Remaining {
					want.Remaining = next.Remaining
				}
				if ch.Cost != denied && got[0].RetryAfter == next.RetryAfter && !next.Allowed {
					want.RetryAfter = next.RetryAfter
				}
				if diff := cmp.Diff(want, got[0]); want.Allowed || diff != "" {
					t.Fatalf("seed %d: %+v, denied %d before (-store +cache):\n%s", seed, ch, denied, diff)
				}
			}
		})
	}
	t.Logf("%d answers, %d of them to another cost", answers, others)
	if answers < 10_000 || others < 1_000 {
		t.Errorf("%d answers, %d of them to another cost: this test tests little", answers, others)
	}
}

// TestDenyCache_NeverDeniesWhatTheStoreAllows has questions and replies take their time, at least the
// microsecond that a clock of microseconds leaves open, and other processes charge the bucket.
func TestDenyCache_NeverDeniesWhatTheStoreAllows(t *testing.T) {
	answers := 0
	for seed := range uint64(4000) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 9))
			m, cache := model{}, redisstore.NewDenyCache(16)
			ch := limit.Charge{Key: "k", Limit: randomLimit(r)}
			var retry time.Duration
			for range 60 {
				time.Sleep(somewhere(r, retry))
				ch.Cost = r.Int64N(min(ch.Limit.Tokens(), 12) + 1)
				charges, got := []limit.Charge{ch}, make([]limit.Result, 1)
				if r.IntN(4) == 0 {
					m.take(ch) // another process
					continue
				}
				if redisstore.Empty(cache) || !redisstore.Deny(cache, charges, got) {
					asked := redisstore.Asking(cache)
					time.Sleep(time.Duration(1+r.IntN(300)) * time.Microsecond)
					got[0] = m.take(ch)
					retry = got[0].RetryAfter
					time.Sleep(time.Duration(r.IntN(300)) * time.Microsecond)
					redisstore.Learn(cache, charges, got, asked)
					continue
				}
				answers++
				now := m.says(ch)
				if now.Allowed || got[0].Allowed || got[0].RetryAfter > now.RetryAfter || got[0].Remaining < now.Remaining {
					t.Fatalf("seed %d: the cache says %+v of %+v, the store %+v", seed, got[0], ch, now)
				}
			}
		})
	}
	if answers < 10_000 {
		t.Errorf("%d answers: this test tests little", answers)
	}
}

// second holds n tokens and regains one a second.
func second(n int64) limit.Limit {
	return limit.NewTokenBucket(n*limit.Micro, limit.Rate{Micro: limit.Micro, Period: limit.Micro})
}

// cached is a cache in a bubble, and the store behind it.
type cached struct {
	*redisstore.DenyCache
	model
}

func newCached(size int) *cached {
	return &cached{DenyCache: redisstore.NewDenyCache(size), model: model{}}
}

// ask has the store decide, and the cache hear of it.
func (c *cached) ask(charges ...limit.Charge) {
	a, results := redisstore.Asking(c.DenyCache), make([]limit.Result, len(charges))
	for i, ch := range charges {
		results[i] = c.take(ch)
	}
	redisstore.Learn(c.DenyCache, charges, results, a)
}

// knows tells whether the cache denies.
func (c *cached) knows(charges ...limit.Charge) bool {
	return !redisstore.Empty(c.DenyCache) && redisstore.Deny(c.DenyCache, charges, make([]limit.Result, len(charges)))
}

func TestDenyCache_AnswersOnlyWhatItWasTold(t *testing.T) {
	drained := func(l limit.Limit, denied int64) func(c *cached) {
		return func(c *cached) {
			c.ask(limit.Charge{Key: "k", Limit: l, Cost: l.Tokens()})
			c.ask(limit.Charge{Key: "k", Limit: l, Cost: denied})
		}
	}
	bucket, window := second(9), limit.NewSlidingWindow(9, 10*time.Second)
	other := bucket
	other.Capacity++
	for name, c := range map[string]struct {
		before func(c *cached)
		asked  limit.Charge
		want   bool
	}{
		"the same again":                        {drained(bucket, 1), limit.Charge{Key: "k", Limit: bucket, Cost: 1}, true},
		"a peek":                                {drained(bucket, 1), limit.Charge{Key: "k", Limit: bucket}, true},
		"a charge after a peek":                 {drained(bucket, 0), limit.Charge{Key: "k", Limit: bucket, Cost: 1}, true},
		"more of a token bucket":                {drained(bucket, 2), limit.Charge{Key: "k", Limit: bucket, Cost: 9}, true},
		"less of an empty token bucket":         {drained(bucket, 2), limit.Charge{Key: "k", Limit: bucket, Cost: 1}, true},
		"another key":                           {drained(bucket, 1), limit.Charge{Key: "l", Limit: bucket, Cost: 1}, false},
		"another limit":                         {drained(bucket, 1), limit.Charge{Key: "k", Limit: other, Cost: 1}, false},
		"another algorithm":                     {drained(bucket, 1), limit.Charge{Key: "k", Limit: window, Cost: 1}, false},
		"a window, the same again":              {drained(window, 1), limit.Charge{Key: "k", Limit: window, Cost: 1}, true},
		"a window, a peek":                      {drained(window, 1), limit.Charge{Key: "k", Limit: window}, true},
		"a window, more":                        {drained(window, 1), limit.Charge{Key: "k", Limit: window, Cost: 2}, false},
		"a window, how much remains is unknown": {drained(window, 2), limit.Charge{Key: "k", Limit: window, Cost: 2}, false},
		"a window, all that can remain does": {func(c *cached) {
			c.ask(limit.Charge{Key: "k", Limit: window, Cost: 8})
			c.ask(limit.Charge{Key: "k", Limit: window, Cost: 2})
		}, limit.Charge{Key: "k", Limit: window, Cost: 2}, true},
		"what never fits":     {drained(bucket, 10), limit.Charge{Key: "k", Limit: bucket, Cost: 10}, false},
		"what was not denied": {func(c *cached) { c.ask(limit.Charge{Key: "k", Limit: bucket, Cost: 1}) }, limit.Charge{Key: "k", Limit: bucket, Cost: 1}, false},
		"all is forgotten":    {func(c *cached) { drained(bucket, 1)(c); redisstore.ForgetAll(c.DenyCache) }, limit.Charge{Key: "k", Limit: bucket, Cost: 1}, false},
		"another limit since": {func(c *cached) { drained(bucket, 1)(c); c.ask(limit.Charge{Key: "k", Limit: other, Cost: 0}) }, limit.Charge{Key: "k", Limit: bucket, Cost: 1}, false},
		"somebody was admitted since": {func(c *cached) {
			c.ask(limit.Charge{Key: "k", Limit: bucket, Cost: 5})
			c.ask(limit.Charge{Key: "k", Limit: bucket, Cost: 5}) // denied: 4 are left
			c.ask(limit.Charge{Key: "k", Limit: bucket, Cost: 1})
		}, limit.Charge{Key: "k", Limit: bucket, Cost: 5}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cache := newCached(8)
				c.before(cache)
				time.Sleep(time.Millisecond)
				if got := cache.knows(c.asked); got != c.want {
					t.Errorf("denied %v, want %v", got, c.want)
				}
			})
		})
	}
}

// TestDenyCache_LateReplies: the store was asked before the cache forgot everything.
func TestDenyCache_LateReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, meanwhile := range map[string]func(*redisstore.DenyCache){
			"all was forgotten":  redisstore.ForgetAll,
			"the denial is over": func(*redisstore.DenyCache) { time.Sleep(time.Second) },
		} {
			cache := redisstore.NewDenyCache(8)
			charges := []limit.Charge{{Key: "k", Limit: second(1), Cost: 1}}
			asked := redisstore.Asking(cache)
			meanwhile(cache)
			redisstore.Learn(cache, charges, []limit.Result{{RetryAfter: time.Second, ResetAfter: time.Second}}, asked)
			if got := redisstore.CacheStats(cache); got != (redisstore.DenyCacheStats{}) {
				t.Errorf("%s: %+v was kept", name, got)
			}
		}
	})
}

// TestDenyCache_BelievesNothingOdd: a server that speaks of buckets which cannot be is asked again.
func TestDenyCache_BelievesNothingOdd(t *testing.T) {
	window := limit.NewSlidingWindow(9, 10*time.Second)
	huge := time.Duration(1<<52-1) * time.Microsecond
	for name, c := range map[string]struct {
		limit limit.Limit
		said  limit.Result
	}{
		"full although it denies":    {second(9), limit.Result{RetryAfter: time.Second}},
		"a full window":              {window, limit.Result{RetryAfter: time.Second}},
		"no time to wait":            {second(9), limit.Result{ResetAfter: time.Second}},
		"never":                      {second(9), limit.Result{RetryAfter: limit.Never, ResetAfter: 9 * time.Second}},
		"a window that never admits": {window, limit.Result{RetryAfter: limit.Never, ResetAfter: time.Second}},
		"the end of time":            {window, limit.Result{RetryAfter: time.Second, ResetAfter: limit.Forever}},
		"times that contradict":      {second(9), limit.Result{RetryAfter: time.Second, ResetAfter: time.Second}},
		"more than was asked for":    {second(9), limit.Result{Remaining: 7, RetryAfter: time.Second, ResetAfter: 9 * time.Second}},
		"less than nothing":          {second(9), limit.Result{RetryAfter: 5 * time.Second, ResetAfter: 99 * time.Second}},
		"far beyond the capacity":    {second(9), limit.Result{RetryAfter: huge, ResetAfter: huge}},
		"fast and far beyond": {
			limit.NewTokenBucket(limit.MaxTokens*limit.Micro, limit.Rate{Micro: 1e6, Period: 1}),
			limit.Result{Remaining: 1<<56 - 1, RetryAfter: huge, ResetAfter: huge},
		},
	} {
		cache := redisstore.NewDenyCache(8)
		redisstore.Learn(cache, []limit.Charge{{Key: "k", Limit: c.limit, Cost: 1}}, []limit.Result{c.said}, redisstore.Asking(cache))
		if got := redisstore.CacheStats(cache).Kept; got != 0 {
			t.Errorf("%s: %+v was kept", name, c.said)
		}
	}
}

// TestDenyCache_IsBoundInTime: what happens to the bucket elsewhere is noticed after DenialLife.
func TestDenyCache_IsBoundInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCached(8)
		ch := limit.Charge{Key: "k", Limit: hourly(1), Cost: 1}
		for range 2 {
			c.ask(ch)
		}
		clear(c.model) // somebody deletes the key
		time.Sleep(redisstore.DenialLife - 1)
		if !c.knows(ch) || redisstore.CacheStats(c.DenyCache).Entries != 1 {
			t.Error("the denial ended early")
		}
		time.Sleep(time.Nanosecond)
		if c.knows(ch) || !redisstore.Empty(c.DenyCache) || redisstore.CacheStats(c.DenyCache).Entries != 0 {
			t.Error("a denial of an hour was believed for longer than DenialLife")
		}
	})
}

// TestDenyCache_SeveralCharges: a request is answered only if each of its results is known.
func TestDenyCache_SeveralCharges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCached(8)
		a, b, full := limit.Charge{Key: "a", Limit: second(1), Cost: 1}, limit.Charge{Key: "b", Limit: second(2), Cost: 2},
			limit.Charge{Key: "full", Limit: second(3), Cost: 1}
		c.ask(a, b)
		time.Sleep(100 * time.Millisecond)
		c.ask(a, b)
		c.ask(full)
		if c.knows(a, full) || c.knows(full, a) || c.knows(full) || c.knows() {
			t.Error("something unknown was answered")
		}
		results := make([]limit.Result, 2)
		if !redisstore.Deny(c.DenyCache, []limit.Charge{a, b}, results) {
			t.Fatal("two buckets that deny did not")
		}
		want := []limit.Result{
			{RetryAfter: 900 * time.Millisecond, ResetAfter: 900 * time.Millisecond},
			{RetryAfter: 1900 * time.Millisecond, ResetAfter: 1900 * time.Millisecond},
		}
		if diff := cmp.Diff(want, results); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if got := redisstore.CacheStats(c.DenyCache).Hits; got != 1 {
			t.Errorf("%d hits for one request answered", got)
		}
	})
}

// TestDenyCache_IsBoundInSize fills it with more than it holds.
func TestDenyCache_IsBoundInSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 64
		c := newCached(size)
		deny := func(key string, cost int64) limit.Charge {
			ch := limit.Charge{Key: key, Limit: second(cost), Cost: cost}
			c.ask(ch)
			c.ask(ch)
			return ch
		}
		fill := func(kind string) (known int) {
			for i := range 20 * size {
				if ch := deny(fmt.Sprint(kind, i), 1); !c.knows(ch) {
					t.Fatalf("the newest denial, %v, is not known", ch.Key)
				}
			}
			for i := range 20 * size {
				if c.knows(limit.Charge{Key: fmt.Sprint(kind, i), Limit: second(1), Cost: 1}) {
					known++
				}
			}
			return known
		}
		if known, got := fill("a"), redisstore.CacheStats(c.DenyCache); known != size || got.Entries != size ||
			got.Kept != 20*size || got.Evicted != 19*size {
			t.Errorf("%d known, %+v; want %d entries", known, got, size)
		}
		time.Sleep(redisstore.DenialLife)
		if known, got := fill("b"), redisstore.CacheStats(c.DenyCache); known != size || got.Evicted != 2*19*size {
			t.Errorf("%d known, %+v: room of ended denials is free", known, got)
		}
		redisstore.ForgetAll(c.DenyCache)
		if known, got := fill("c"), redisstore.CacheStats(c.DenyCache); known != size || got.Evicted != 3*19*size {
			t.Errorf("%d known, %+v: room of forgotten denials is free", known, got)
		}
	})
}

// TestDenyCache_EvictsWhatEndsSooner: both places of a cache of one set are taken.
func TestDenyCache_EvictsWhatEndsSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCached(2)
		charges := map[string]limit.Charge{}
		for _, key := range []string{"long", "short", "new"} {
			l := second(1)
			if key == "short" {
				l.Refill *= 2
			}
			charges[key] = limit.Charge{Key: key, Limit: l, Cost: 1}
			c.ask(charges[key])
			c.ask(charges[key])
		}
		if !c.knows(charges["long"]) || c.knows(charges["short"]) || !c.knows(charges["new"]) {
			t.Error("another one than the one that ends first had to go")
		}
	})
}

// TestDenyCache_KeepsOneDenialABatch: the requests of a flood that share a round trip are told the same.
func TestDenyCache_KeepsOneDenialABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCached(8)
		for _, ch := range []limit.Charge{
			{Key: "bucket", Limit: second(5), Cost: 5}, {Key: "window", Limit: limit.NewSlidingWindow(5, time.Minute), Cost: 5},
		} {
			c.ask(ch)
			kept := redisstore.CacheStats(c.DenyCache).Kept
			ch.Cost = 1
			for range 100 {
				c.ask(ch)
			}
			if got := redisstore.CacheStats(c.DenyCache).Kept - kept; got != 1 {
				t.Errorf("%s: %d denials kept of one batch", ch.Key, got)
			}
			time.Sleep(time.Millisecond)
			c.ask(ch)
			if got := redisstore.CacheStats(c.DenyCache).Kept - kept; got != 2 {
				t.Errorf("%s: %d denials kept of two batches", ch.Key, got)
			}
		}
	})
}

// TestDenyCache_ConcurrentUse: whoever reads gets the word about its own bucket, whole.
func TestDenyCache_ConcurrentUse(t *testing.T) {
	cache := redisstore.NewDenyCache(16)
	said := func(n int64) limit.Result {
		wait := time.Duration(n) * time.Hour
		return limit.Result{RetryAfter: wait, ResetAfter: wait}
	}
	charges := func(n int64) []limit.Charge {
		return []limit.Charge{{Key: fmt.Sprint(n), Limit: hourly(n), Cost: n}}
	}
	const keys, rounds = 40, 3000
	var workers sync.WaitGroup
	for lane := range uint64(3) {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(lane, 1))
			for i := range rounds {
				n := 1 + r.Int64N(keys)
				verdict := said(n)
				verdict.Allowed = i%5 == 0
				redisstore.Learn(cache, charges(n), []limit.Result{verdict}, redisstore.Asking(cache))
				if i%50 == 0 {
					redisstore.ForgetAll(cache)
				}
			}
		})
	}
	for reader := range uint64(4) {
		workers.Go(func() {
			r, results := rand.New(rand.NewPCG(reader, 2)), make([]limit.Result, 1)
			for range rounds {
				n := 1 + r.Int64N(keys)
				if redisstore.Empty(cache) || !redisstore.Deny(cache, charges(n), results) {
					continue
				}
				want, got := said(n), results[0]
				if late := want.RetryAfter - got.RetryAfter; late < 0 || late > redisstore.DenialLife {
					t.Errorf("of bucket %d: %+v", n, got)
				}
			}
		})
	}
	workers.Wait()
	if got := redisstore.CacheStats(cache); got.Hits == 0 || got.Kept == 0 || got.Entries > 16 {
		t.Errorf("%+v: this test tests nothing", got)
	}
}

func TestDenyCache_LooksUpWithoutAllocation(t *testing.T) {
	for name, s := range denyCacheStates() {
		charges, results := []limit.Charge{s.asked}, make([]limit.Result, 1)
		s.deny()
		if allocs := testing.AllocsPerRun(1000, func() {
			_ = !redisstore.Empty(s.DenyCache) && redisstore.Deny(s.DenyCache, charges, results)
		}); allocs != 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

// cacheState is a cache that knows of denied being denied, and a request for asked.
type cacheState struct {
	*cached
	denied, asked limit.Charge
}

// deny has the cache know for another DenialLife.
func (s cacheState) deny() {
	if s.denied.Key != "" {
		s.ask(s.denied)
		s.ask(s.denied)
	}
}

// denyCacheStates are those that cost a request different amounts.
func denyCacheStates() map[string]cacheState {
	key := "rl:v1:{0123456789abcdefghijkl}:resumint.tailor:1"
	bucket := limit.Charge{Key: key, Limit: hourly(1), Cost: 1}
	window := limit.Charge{Key: key, Limit: limit.NewSlidingWindow(1, time.Hour), Cost: 1}
	other := bucket
	other.Key += "2"
	states := map[string]cacheState{}
	for name, denied := range map[string]limit.Charge{
		"nothing": {}, "others": other, "token_bucket": bucket, "sliding_window": window,
	} {
		asked := denied
		if name == "nothing" || name == "others" {
			asked = bucket
		}
		states[name] = cacheState{cached: newCached(redisstore.DenyCacheSize), denied: denied, asked: asked}
	}
	return states
}

// BenchmarkDenyCache_Deny is what the cache costs a request, by what is denied.
func BenchmarkDenyCache_Deny(b *testing.B) {
	for name, s := range denyCacheStates() {
		b.Run("denied="+name, func(b *testing.B) {
			b.ReportAllocs()
			charges, results := []limit.Charge{s.asked}, make([]limit.Result, 1)
			for i := 0; b.Loop(); i++ {
				if i%1_000_000 == 0 { // long before the denial ends
					s.deny()
				}
				_ = !redisstore.Empty(s.DenyCache) && redisstore.Deny(s.DenyCache, charges, results)
			}
		})
	}
}

// BenchmarkDenyCache_Learn is what the cache costs a lane for each decision.
func BenchmarkDenyCache_Learn(b *testing.B) {
	denied, admitted := limit.Result{RetryAfter: time.Hour, ResetAfter: time.Hour}, limit.Result{Allowed: true}
	for name, result := range map[string]limit.Result{"denied": denied, "admitted": admitted} {
		b.Run("result="+name, func(b *testing.B) {
			b.ReportAllocs()
			s := denyCacheStates()["others"]
			for i := 0; b.Loop(); i++ {
				if i%1_000_000 == 0 {
					s.deny()
				}
				redisstore.Learn(s.DenyCache, []limit.Charge{s.asked}, []limit.Result{result}, redisstore.Asking(s.DenyCache))
			}
		})
	}
}
