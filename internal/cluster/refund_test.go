package cluster_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/cluster"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/topology"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// settle waits until nothing is being given back.
func (r *rig) settle() {
	r.t.Helper()
	redistest.Eventually(r.t, "refunds arrive", func() bool { return r.Stats().Refunds.InFlight == 0 })
}

// bucket is what a model knows of one.
type bucket struct {
	key   string
	limit limit.Limit
	held  int64
}

func newBucket(random *rand.Rand) bucket {
	l := randomLimit(random)
	return bucket{key: fmt.Sprint(random.Uint64()), limit: l, held: l.Tokens()}
}

func (b *bucket) fits(cost int64) bool { return max(1, cost) <= b.held }

// randomLimit refills so slowly, or has so long a window, that no test sees it.
func randomLimit(random *rand.Rand) limit.Limit {
	if random.IntN(2) == 0 {
		return yearly(1 + random.Int64N(20))
	}
	return limit.NewSlidingWindow(1+random.Int64N(20), 24*time.Hour)
}

// TestStore_ADenialChargesNothing makes random requests over buckets in many slots and compares with a model in which
// a request is one atomic step. What is denied leaves no trace, and reads as if nothing had been charged.
func TestStore_ADenialChargesNothing(t *testing.T) {
	set := startCluster(t, topology.Config{Replicas: topology.None})
	cfg := quick(addresses(set)...)
	cfg.Store.NoDenyCache = true
	r := run(t, cfg).serving()
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 16))
	buckets := make([]bucket, 12)
	for n := range buckets {
		buckets[n] = newBucket(random)
	}
	denied := 0
	for step := range 600 {
		var asked []*bucket
		var charges []limit.Charge
		admit := true
		for _, n := range random.Perm(len(buckets))[:2+random.IntN(4)] {
			b := &buckets[n]
			if b.held == 0 && random.IntN(3) == 0 {
				*b = newBucket(random)
			}
			c := charge(b.key, b.limit, random.Int64N(5))
			asked, charges = append(asked, b), append(charges, c)
			admit = admit && b.fits(c.Cost)
		}
		got := r.take(charges...)
		for i, b := range asked {
			want := limit.Result{Allowed: b.fits(charges[i].Cost), Remaining: b.held}
			if admit {
				b.held -= charges[i].Cost
				want.Remaining = b.held
			}
			if got[i].Allowed != want.Allowed || got[i].Remaining != want.Remaining {
				t.Fatalf("step %d: %+v of %+v, want %+v; admitted as a whole: %v", step, got[i], charges[i], want, admit)
			}
		}
		if !admit {
			denied++
		}
		r.settle()
	}
	stats := r.Stats()
	t.Logf("%d of 600 denied, refunds %+v", denied, stats.Refunds)
	if stats.Refunds.Lost > 0 || stats.Refunds.Done < 50 || denied < 100 {
		t.Errorf("%d denied, refunds %+v: nothing may be lost, and much must be refunded", denied, stats.Refunds)
	}
}

// TestStore_WhatIsKnownToDenyChargesNobody: once a bucket is known to deny, the others of a request are only asked.
func TestStore_WhatIsKnownToDenyChargesNobody(t *testing.T) {
	set := startCluster(t, topology.Config{Replicas: topology.None})
	r := run(t, quick(addresses(set)...)).serving()
	empty, full := charge("empty", yearly(1), 1), charge("full", yearly(100), 1)
	r.take(empty)
	denies := r.take(empty)
	for range 20 {
		want := []limit.Result{{Allowed: true, Remaining: 100}, denies[0]}
		near := cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < time.Minute })
		if diff := cmp.Diff(want, r.take(full, empty), near); diff != "" {
			t.Fatalf("results (-want +got):\n%s", diff)
		}
	}
	if got := r.Stats().Refunds; got != (cluster.RefundStats{}) {
		t.Errorf("refunds %+v for requests whose denial was known", got)
	}
	other := charge("also empty", yearly(1), 1)
	r.take(other)
	r.take(other)
	asked := r.Stats().Store.DenyCache.Hits
	r.take(other, empty)
	if got := r.Stats().Store.DenyCache.Hits; got != asked+2 {
		t.Errorf("a request of two buckets known to deny: %d answers of the cache, want 2", got-asked)
	}
}

// TestStore_ManyNeverAdmitMore lets several stores race for buckets in different slots. However charges and refunds
// interleave, no bucket admits more than it holds; when all is over it holds what was not admitted.
func TestStore_ManyNeverAdmitMore(t *testing.T) {
	const capacity, workers, each = 120, 8, 80
	set := startCluster(t, topology.Config{Replicas: topology.None})
	var stores []*rig
	for range 3 {
		stores = append(stores, run(t, quick(addresses(set)...)).serving())
	}
	for name, l := range map[string]limit.Limit{
		"token bucket": yearly(capacity), "sliding window": limit.NewSlidingWindow(capacity, 24*time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			var admitted [4]atomic.Int64
			var racing sync.WaitGroup
			for w := range workers * len(stores) {
				racing.Go(func() {
					r, random := stores[w%len(stores)], rand.New(rand.NewPCG(uint64(w), 17))
					for range each {
						picked := random.Perm(len(admitted))[:2]
						c := failure.NewCall([]limit.Charge{
							charge(fmt.Sprint(name, picked[0]), l, 1), charge(fmt.Sprint(name, picked[1]), l, 1),
						}, time.Now().Add(redistest.Patience))
						r.Submit(c)
						<-c.Done()
						if c.Cause() != failure.CauseNone {
							t.Errorf("a call failed of %v", c.Cause())
							return
						}
						if c.Results[0].Allowed && c.Results[1].Allowed {
							admitted[picked[0]].Add(1)
							admitted[picked[1]].Add(1)
						}
					}
				})
			}
			racing.Wait()
			for _, r := range stores {
				r.settle()
			}
			for n := range admitted {
				got := admitted[n].Load()
				if got > capacity {
					t.Errorf("bucket %d admitted %d of %d", n, got, capacity)
				}
				// A store may believe in a denial for a second that another one's refund has ended.
				redistest.Eventually(t, "the bucket holds what was not admitted", func() bool {
					return got+stores[0].left(fmt.Sprint(name, n), l) == capacity
				})
			}
		})
	}
	for _, r := range stores {
		if got := r.Stats().Refunds; got.Lost > 0 {
			t.Errorf("refunds %+v", got)
		}
	}
}

// TestStore_NothingIsExecutedTwice cuts the connections under requests that were executed, and whose answers are on
// their way: they fail, and have charged once.
func TestStore_NothingIsExecutedTwice(t *testing.T) {
	set := startCluster(t, topology.Config{Replicas: topology.None})
	cfg := quick(addresses(set)...)
	cfg.NAT = map[string]string{}
	proxies := map[string]*redistest.Proxy{}
	for _, n := range set.Data() {
		p := redistest.NewProxy(t, "tcp", n.Addr())
		cfg.NAT[n.Addr()], proxies[n.Addr()] = p.Addr(), p
	}
	cfg.Store.SocketTimeout, cfg.Store.CheckInterval = redistest.Patience, time.Hour
	r := run(t, cfg).serving()
	for _, s := range r.Stats().Shards {
		if !slices.ContainsFunc(set.Data(), func(n *topology.Node) bool { return cfg.NAT[n.Addr()] == s.Address }) {
			t.Fatalf("shard at %s: the NAT map was not applied", s.Address)
		}
	}
	first, second := keyIn(0, 5000, 1), keyIn(6000, 10000, 2)
	cut := proxies[owner(t, set, 0).Addr()]
	cut.Delay(redistest.Patience)
	alone := r.submit(charge(first, yearly(10), 1))
	crossed := r.submit(charge(first, yearly(10), 1), charge(second, yearly(10), 1))
	admin := owner(t, set, 0).Client()
	redistest.Eventually(t, "both were executed", func() bool {
		raw := admin.Get(t.Context(), "rl:v1:"+first).Val() // algorithm, time, and five bytes of what is left
		return len(raw) == 15 && binary.BigEndian.Uint32([]byte(raw[9:13])) == 8*limit.Micro
	})
	redistest.Eventually(t, "the other slot has answered", func() bool { return r.Stats().Store.InFlight == 2 })
	cut.Cut()
	cut.Heal()
	for name, c := range map[string]*failure.Call{"one slot": alone, "two slots": crossed} {
		if got := r.cause(c); got != failure.CauseReset {
			t.Errorf("the call of %s ended with %v, want reset", name, got)
		}
	}
	redistest.Eventually(t, "the shard is back", func() bool {
		return r.cause(r.submit(charge(first, yearly(10), 0))) == failure.CauseNone
	})
	r.settle()
	if got := r.left(first, yearly(10)); got != 8 {
		t.Errorf("after two requests that failed the bucket holds %d of 10, want 8", got)
	}
	if got := r.left(second, yearly(10)); got != 10 {
		t.Errorf("the other bucket of a request that failed holds %d of 10", got)
	}
}
