package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/cluster"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/topology"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// load is many callers who charge the same buckets, and count what they are told.
type load struct {
	admitted, denied atomic.Int64
	mu               sync.Mutex
	failed           map[failure.Cause]int
	stop             func()
}

// offer begins a load of requests, each of the next of the sets of charges.
func offer(r *rig, callers int, requests ...[]limit.Charge) *load {
	l := &load{failed: map[failure.Cause]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	var calling sync.WaitGroup
	for n := range callers {
		calling.Go(func() {
			for ; ctx.Err() == nil; n++ {
				l.once(r, requests[n%len(requests)])
			}
		})
	}
	l.stop = func() { cancel(); calling.Wait() }
	r.t.Cleanup(l.stop)
	return l
}

func (l *load) once(r *rig, charges []limit.Charge) {
	c := failure.NewCall(slices.Clone(charges), time.Now().Add(redistest.Patience))
	r.Submit(c)
	<-c.Done()
	switch {
	case c.Cause() != failure.CauseNone:
		l.mu.Lock()
		l.failed[c.Cause()]++
		l.mu.Unlock()
	case slices.ContainsFunc(c.Results, func(r limit.Result) bool { return !r.Allowed }):
		l.denied.Add(1)
	default:
		l.admitted.Add(1)
	}
}

// unharmed fails the test if any call failed.
func (l *load) unharmed(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failed) > 0 {
		t.Errorf("calls failed of %v", l.failed)
	}
	if l.admitted.Load() == 0 {
		t.Error("nothing was admitted: this load tests nothing")
	}
}

// tag returns a hash tag whose keys are in the slot.
func tag(slot uint16) string {
	for i := 0; ; i++ {
		if text := fmt.Sprint("{", i, "}"); cluster.Slot(text) == slot {
			return text
		}
	}
}

// TestStore_ASlotMigratesUnderLoad moves a slot, bucket by bucket, while requests of one bucket and of several charge
// them. No call fails, and every bucket admits exactly what it holds, wherever it is.
func TestStore_ASlotMigratesUnderLoad(t *testing.T) {
	const slot, buckets, capacity = 100, 8, 3000
	set := startCluster(t, topology.Config{Replicas: topology.None})
	cfg := quick(addresses(set)...)
	cfg.PollInterval = time.Minute
	r := run(t, cfg).serving()
	var singles, all [][]limit.Charge
	for n := range buckets {
		one := charge(fmt.Sprint(tag(slot), n), yearly(capacity), 1)
		singles = append(singles, []limit.Charge{one})
		if n > 0 {
			all = append(all, []limit.Charge{singles[n-1][0], one})
		}
		r.take(charge(fmt.Sprint(tag(slot), n), yearly(capacity), 0))
	}
	l, pairs := offer(r, 6, singles...), offer(r, 3, all...)
	from, to := owner(t, set, slot), set.Data()[2]
	// There and back again, slowly, so that each state of the way is met by many.
	for range 2 {
		m, err := set.BeginMigration(t.Context(), slot, from, to)
		if err != nil {
			t.Fatal(err)
		}
		for moved := 1; moved > 0; {
			met := l.admitted.Load() + l.denied.Load()
			redistest.Eventually(t, "requests meet this state", func() bool {
				return l.admitted.Load()+l.denied.Load() > met+200
			})
			if moved, err = m.MoveKeys(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		from, to = to, from
	}
	redistest.Eventually(t, "every bucket is empty", func() bool {
		return !slices.ContainsFunc(singles, func(c []limit.Charge) bool {
			return r.take(limit.Charge{Key: c[0].Key, Limit: c[0].Limit})[0].Remaining > 0
		})
	})
	l.stop()
	pairs.stop()
	l.unharmed(t)
	pairs.unharmed(t)
	stats := r.Stats()
	t.Logf("%d admitted alone, %d as pairs; redirects %+v, refunds %+v", l.admitted.Load(), pairs.admitted.Load(),
		stats.Redirects, stats.Refunds)
	got := l.admitted.Load() + 2*pairs.admitted.Load()
	if got > buckets*capacity || got < buckets*capacity && stats.Refunds.Lost == 0 {
		t.Errorf("%d tokens admitted, the buckets held %d", got, buckets*capacity)
	}
	if stats.Redirects.Ask == 0 || stats.Redirects.Moved == 0 || stats.Redirects.TryAgain == 0 {
		t.Errorf("redirects %+v: this test does not meet all kinds", stats.Redirects)
	}
}

// TestStore_ANodeIsAdded adds a master while requests come, and gives it slots that hold buckets. The store learns of it
// by being sent there.
func TestStore_ANodeIsAdded(t *testing.T) {
	const capacity, moved = 500, 40
	set := startCluster(t, topology.Config{Replicas: topology.None})
	cfg := quick(addresses(set)...)
	cfg.PollInterval = time.Hour
	r := run(t, cfg).serving()
	var requests [][]limit.Charge
	for slot := range uint16(moved) {
		requests = append(requests, []limit.Charge{charge(tag(slot), yearly(capacity), 1)})
	}
	l := offer(r, 6, requests...)
	added, err := set.AddNode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Reshard(t.Context(), moved, owner(t, set, 0), added); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "everybody is sent straight to the new node", func() bool {
		for _, s := range r.Stats().Shards {
			if s.Address == added.Addr() {
				return s.Slots == moved
			}
		}
		return false
	})
	redistest.Eventually(t, "every bucket is empty", func() bool { return l.denied.Load() > 3000 })
	l.stop()
	l.unharmed(t)
	t.Logf("%d admitted, %d denied, %+v", l.admitted.Load(), l.denied.Load(), r.Stats().Redirects)
	for _, c := range requests {
		if left := r.take(limit.Charge{Key: c[0].Key, Limit: c[0].Limit})[0].Remaining; left > 0 {
			t.Fatalf("a bucket was not emptied: %d left", left)
		}
	}
	if got, want := l.admitted.Load(), int64(len(requests)*capacity); got != want {
		t.Errorf("%d admitted, the buckets held %d", got, want)
	}
}
