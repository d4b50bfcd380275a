package memstore_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/honestlimit/ratelimit/internal/memstore"
	"github.com/honestlimit/ratelimit/internal/storetest"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

func newStore(t testing.TB, cfg memstore.Config) *memstore.Store {
	t.Helper()
	s, err := memstore.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func perSecond(capacity int64) limit.Limit {
	return limit.NewTokenBucket(capacity*limit.Micro, limit.Rate{Micro: limit.Micro, Period: limit.Micro})
}

// take charges one bucket and returns what was left.
func take(s *memstore.Store, key string, l limit.Limit, cost int64) limit.Result {
	c := failure.NewCall([]limit.Charge{{Key: key, Limit: l, Cost: cost}}, time.Now().Add(time.Second))
	s.Submit(c)
	<-c.Done()
	return c.Results[0]
}

func TestStore_Conforms(t *testing.T) {
	t.Run("roomy", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) failure.Store { return newStore(t, memstore.Config{}) })
	})
	t.Run("just enough room", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) failure.Store { return newStore(t, memstore.Config{MaxBuckets: 64}) })
	})
}

func TestNew_RejectsNonsense(t *testing.T) {
	if _, err := memstore.New(memstore.Config{MaxBuckets: -1}); err == nil {
		t.Error("New accepted -1 buckets")
	}
}

func TestStore_SweepsFullBucketsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, memstore.Config{MaxBuckets: 10})
		for i := range 5 {
			take(s, fmt.Sprint("short", i), perSecond(100), 1)
		}
		for i := range 5 {
			take(s, fmt.Sprint("long", i), perSecond(100), 100)
		}
		time.Sleep(1001 * time.Millisecond) // the short ones are full again
		for i := range 5 {
			take(s, fmt.Sprint("new", i), perSecond(100), 50)
		}
		want := memstore.Stats{Buckets: 10, Expired: 5}
		if got := s.Stats(); got != want {
			t.Errorf("Stats() = %+v, want %+v", got, want)
		}
		for i := range 5 {
			if r := take(s, fmt.Sprint("long", i), perSecond(100), 0); r.Remaining > 2 {
				t.Errorf("bucket long%d was forgotten: %d left", i, r.Remaining)
			}
		}
	})
}

func TestStore_EvictsTheNearestToFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, memstore.Config{MaxBuckets: 4})
		// In no order of insertion; then a charge that moves one to the far end.
		for _, used := range []int64{30, 10, 20, 40} {
			take(s, fmt.Sprint("used", used), perSecond(100), used)
		}
		take(s, "used10", perSecond(100), 80)
		take(s, "newcomer", perSecond(100), 1)
		take(s, "another", perSecond(100), 2)
		want := memstore.Stats{Buckets: 4, Evicted: 2}
		if got := s.Stats(); got != want {
			t.Errorf("Stats() = %+v, want %+v", got, want)
		}
		for key, left := range map[string]int64{
			"used10": 10, "used40": 60, "used30": 70, "another": 98, // kept
			"used20": 100, "newcomer": 100, // forgotten
		} {
			if r := take(s, key, perSecond(100), 0); r.Remaining != left {
				t.Errorf("%s has %d left, want %d", key, r.Remaining, left)
			}
		}
	})
}

// TestStore_SparesTheRequestItself has a request whose own buckets are the nearest to full while there is no room.
func TestStore_SparesTheRequestItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, memstore.Config{MaxBuckets: 2})
		take(s, "a", perSecond(10), 1)
		take(s, "b", perSecond(10), 2)
		c := failure.NewCall([]limit.Charge{
			{Key: "a", Limit: perSecond(10), Cost: 0}, {Key: "new", Limit: perSecond(10), Cost: 3},
		}, time.Now().Add(time.Second))
		s.Submit(c)
		for key, left := range map[string]int64{"a": 9, "b": 10, "new": 7} {
			if r := take(s, key, perSecond(10), 0); r.Remaining != left {
				t.Errorf("%s has %d left, want %d", key, r.Remaining, left)
			}
		}
	})
}

// TestStore_StateLivesAsLongAsInRedis: the state is dropped when the limit under which it was written is full again,
// even if it meets a slower one then.
func TestStore_StateLivesAsLongAsInRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := limit.NewTokenBucket(10*limit.Micro, limit.Rate{Micro: limit.Micro, Period: 3600 * limit.Micro})
		for _, c := range []struct {
			after time.Duration
			want  int64
		}{{999 * time.Millisecond, 9}, {time.Second, 10}} {
			s := newStore(t, memstore.Config{})
			take(s, "k", perSecond(10), 1)
			time.Sleep(c.after)
			if r := take(s, "k", slow, 0); r.Remaining != c.want {
				t.Errorf("%v after the charge %d left, want %d", c.after, r.Remaining, c.want)
			}
		}
	})
}

func TestStore_GarbageDoesNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, memstore.Config{})
		most := 0
		for i := range 20_000 {
			take(s, fmt.Sprint(i), perSecond(100), 1) // full again after a second, in which 1,000 more come
			most = max(most, s.Stats().Buckets)
			time.Sleep(time.Millisecond)
		}
		if most > 4000 {
			t.Errorf("%d buckets kept at once, although only 1,000 at a time are not full", most)
		}
	})
}

// TestStore_GarbageGoesAfterABurst: a store that was once large becomes small again by the requests that come.
func TestStore_GarbageGoesAfterABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, memstore.Config{MaxBuckets: 4000}) // few enough for two shards
		for i := range 3000 {
			take(s, fmt.Sprint("burst", i), perSecond(100), 1)
		}
		time.Sleep(2 * time.Second)
		for i := range 1500 {
			take(s, fmt.Sprint("after", i), perSecond(100), 1)
		}
		if got := s.Stats(); got.Buckets != 1500 {
			t.Errorf("Stats() = %+v, want the 1500 buckets that are not full", got)
		}
	})
}

func TestStore_BoundHoldsUnderLoad(t *testing.T) {
	s := newStore(t, memstore.Config{MaxBuckets: 5000})
	var busy sync.WaitGroup
	for w := range 8 {
		busy.Go(func() {
			for i := range 5000 {
				take(s, fmt.Sprint(w, ":", i), perSecond(1000), 900)
			}
		})
	}
	busy.Wait()
	got := s.Stats()
	if got.Buckets > 5000 || got.Evicted+got.Expired < 35_000 {
		t.Errorf("Stats() = %+v, want at most 5000 buckets of the 40,000", got)
	}
}

func TestStore_DoesNotAllocate(t *testing.T) {
	s := newStore(t, memstore.Config{})
	charges := []limit.Charge{
		{Key: "rl:v1:{0123456789abcdef}:a:1", Limit: perSecond(1_000_000), Cost: 1},
		{Key: "rl:v1:{0123456789abcdef}:b:1", Limit: limit.NewSlidingWindow(1_000_000, time.Hour), Cost: 1},
	}
	c := failure.NewCall(charges, time.Now())
	s.Submit(c)
	c2 := failure.NewCall(charges, time.Now())
	if n := testing.AllocsPerRun(100, func() {
		memstore.Decide(s, c2.Charges, c2.Results)
	}); n != 0 {
		t.Errorf("a decision on two existing buckets allocates %v times", n)
	}
}

func BenchmarkStore_Submit(b *testing.B) {
	for _, buckets := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("buckets=%d", buckets), func(b *testing.B) {
			s := newStore(b, memstore.Config{})
			var charges []limit.Charge
			for i := range buckets {
				charges = append(charges, limit.Charge{Key: fmt.Sprint("k", i), Limit: perSecond(1_000_000), Cost: 1})
			}
			c := failure.NewCall(charges, time.Now())
			b.ReportAllocs()
			for b.Loop() {
				memstore.Decide(s, c.Charges, c.Results)
			}
		})
	}
	b.Run("keys=100000", func(b *testing.B) {
		s := newStore(b, memstore.Config{})
		keys := make([]string, 100_000)
		for i := range keys {
			keys[i] = fmt.Sprint("rl:v1:{0123456789abcdef}:endpoint:", i)
			take(s, keys[i], perSecond(1_000_000), 1)
		}
		c := failure.NewCall([]limit.Charge{{Limit: perSecond(1_000_000), Cost: 1}}, time.Now())
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			c.Charges[0].Key = keys[i%len(keys)]
			i += 7919
			memstore.Decide(s, c.Charges, c.Results)
		}
	})
	b.Run("newcomers", func(b *testing.B) {
		s := newStore(b, memstore.Config{MaxBuckets: 100_000})
		i := 0
		for b.Loop() {
			take(s, fmt.Sprint(i), perSecond(1_000_000), 1)
			i++
		}
	})
}
