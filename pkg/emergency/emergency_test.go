package emergency_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/honestlimit/ratelimit/pkg/emergency"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

func endpoint(id string, tokens int64, per time.Duration) *limit.Endpoint {
	return &limit.Endpoint{
		Domain: "mesh", ID: id, FailMode: limit.FailOpen,
		Fallback: limit.Rate{Micro: tokens * limit.Micro, Period: per.Microseconds()},
	}
}

func charge(e *limit.Endpoint, cost int64) limit.Charge {
	return limit.Charge{Key: e.ID, Cost: cost, Endpoint: e}
}

func limiter(endpoints ...*limit.Endpoint) *emergency.Limiter {
	l := emergency.New()
	l.Configure(endpoints)
	return l
}

// step takes n times one charge of cost at a time, and wants so many admitted.
type step struct {
	at      time.Duration
	n, cost int64
	want    int64
}

func TestLimiter_Take(t *testing.T) {
	tests := map[string]struct {
		endpoint *limit.Endpoint
		steps    []step
	}{
		"a burst of one second's worth, then the rate": {endpoint("e", 5, time.Second), []step{
			{0, 10, 1, 5},
			{199 * time.Millisecond, 1, 1, 0},
			{200 * time.Millisecond, 3, 1, 1},
			{time.Second, 10, 1, 4},
			{time.Minute, 10, 1, 5},
		}},
		"a rate that divides no second": {endpoint("e", 3, time.Second), []step{
			{0, 10, 1, 3},
			{333 * time.Millisecond, 1, 1, 0},
			{334 * time.Millisecond, 10, 1, 1},
			{10*time.Second + 334*time.Millisecond, 10, 1, 3},
		}},
		"a rate below one a second still admits": {endpoint("e", 1, time.Minute), []step{
			{0, 5, 1, 1},
			{59 * time.Second, 5, 1, 0},
			{60 * time.Second, 5, 1, 1},
		}},
		"one a year": {endpoint("e", 1, 365*24*time.Hour), []step{
			{0, 2, 1, 1},
			{364 * 24 * time.Hour, 2, 1, 0},
			{365 * 24 * time.Hour, 2, 1, 1},
		}},
		"a cost above the capacity counts as the capacity": {endpoint("e", 5, time.Second), []step{
			{0, 2, 500, 1},
			{999 * time.Millisecond, 1, 500, 0},
			{time.Second, 1, 500, 1},
		}},
		"a cost of 0 asks and takes nothing": {endpoint("e", 2, time.Second), []step{
			{0, 5, 0, 5},
			{0, 3, 1, 2},
			{0, 5, 0, 0},
			{500 * time.Millisecond, 5, 0, 5},
			{500 * time.Millisecond, 2, 1, 1},
		}},
		"a million a second for a year": {endpoint("e", 1_000_000, time.Second), []step{
			{0, 1_000_001, 1, 1_000_000},
			{365 * 24 * time.Hour, 1, 2_000_000, 1},
			{365 * 24 * time.Hour, 1, 1, 0},
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, start := limiter(tt.endpoint), time.Now()
				for i, s := range tt.steps {
					time.Sleep(time.Until(start.Add(s.at)))
					var got int64
					for range s.n {
						if _, _, ok := l.Take([]limit.Charge{charge(tt.endpoint, s.cost)}); ok {
							got++
						}
					}
					if got != s.want {
						t.Errorf("step %d: %d of %d admitted at %v, want %d", i, got, s.n, s.at, s.want)
					}
				}
			})
		})
	}
}

// A flood of denied requests must not bank what the rate makes between them: the double-refill defect that the
// specification names.
func TestLimiter_DeniedRequestsWriteNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := endpoint("e", 10, time.Second)
		l, admitted := limiter(e), 0
		for range 10_000 {
			if _, _, ok := l.Take([]limit.Charge{charge(e, 1)}); ok {
				admitted++
			}
			time.Sleep(time.Millisecond)
		}
		if want := 10 + 10*10; admitted != want-1 && admitted != want {
			t.Errorf("a flood of 10 s at 10/s got %d through, want %d", admitted, want)
		}
	})
}

func TestLimiter_RetryAfterIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := endpoint("e", 7, time.Minute)
		l := limiter(e)
		for i := range 20 {
			wait, _, ok := l.Take([]limit.Charge{charge(e, 1)})
			if ok {
				continue
			}
			time.Sleep(wait - time.Microsecond)
			if _, _, ok := l.Take([]limit.Charge{charge(e, 1)}); ok {
				t.Fatalf("round %d: admitted before its RetryAfter of %v", i, wait)
			}
			time.Sleep(time.Microsecond)
			if _, _, ok := l.Take([]limit.Charge{charge(e, 1)}); !ok {
				t.Fatalf("round %d: denied after its RetryAfter of %v", i, wait)
			}
		}
	})
}

func TestLimiter_SeveralBucketsAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wide, narrow := endpoint("wide", 10, time.Second), endpoint("narrow", 2, time.Second)
		l := limiter(wide, narrow)
		both := []limit.Charge{charge(wide, 1), charge(narrow, 1)}
		for i, want := range []bool{true, true, false, false} {
			_, denied, ok := l.Take(both)
			if ok != want || !ok && denied != 1 {
				t.Errorf("request %d: admitted %v, denied by %d, want %v, and the narrow one to blame", i, ok, denied, want)
			}
		}
		for i := range 9 { // 8 are left: the denied requests took none
			if _, _, ok := l.Take([]limit.Charge{charge(wide, 1)}); ok != (i < 8) {
				t.Errorf("request %d on the wide bucket: admitted %v", i, ok)
			}
		}
	})
}

func TestLimiter_TwoChargesOnOneEndpointAddUp(t *testing.T) {
	e := endpoint("e", 1, 24*time.Hour)
	e.Fallback.Micro *= 3 * 24 * 3600 // 3 a second
	l := limiter(e)
	if _, _, ok := l.Take([]limit.Charge{charge(e, 2), charge(e, 2)}); !ok {
		t.Fatal("a cost above the capacity must count as the capacity")
	}
	if _, _, ok := l.Take([]limit.Charge{charge(e, 1)}); ok {
		t.Error("two charges of 2 on a bucket of 3 left a token")
	}
}

func TestLimiter_ConfigureKeepsBucketsOfTheSameRate(t *testing.T) {
	same, changed, gone := endpoint("same", 1, time.Hour), endpoint("changed", 1, time.Hour), endpoint("gone", 1, time.Hour)
	l := limiter(same, changed, gone)
	for _, e := range []*limit.Endpoint{same, changed, gone} {
		if _, _, ok := l.Take([]limit.Charge{charge(e, 1)}); !ok {
			t.Fatalf("%s: a full bucket denied", e.ID)
		}
	}
	changed = endpoint("changed", 2, time.Hour)
	respelt := endpoint("same", 24, 24*time.Hour)
	l.Configure([]*limit.Endpoint{respelt, changed})
	for e, want := range map[*limit.Endpoint]bool{same: false, changed: true, gone: false} {
		if _, _, ok := l.Take([]limit.Charge{charge(e, 1)}); ok != want {
			t.Errorf("%s after the reload: admitted %v, want %v", e.ID, ok, want)
		}
	}
}

func TestLimiter_EndpointWithoutMeterIsDenied(t *testing.T) {
	closed := endpoint("closed", 1, time.Second)
	closed.FailMode = limit.FailClosed
	invalid := endpoint("invalid", 1, time.Second)
	invalid.Fallback = limit.Rate{}
	l := limiter(closed, invalid)
	for _, e := range []*limit.Endpoint{closed, invalid, endpoint("unknown", 1, time.Second)} {
		if wait, _, ok := l.Take([]limit.Charge{charge(e, 1)}); ok || wait <= 0 {
			t.Errorf("%s: Take = %v, %v, want a denial with a time", e.ID, wait, ok)
		}
	}
}

// Under contention no more than the capacity is admitted, on any bucket, and what a request that lost a race had
// taken is given back.
func TestLimiter_ConcurrentTakesNeverExceedCapacity(t *testing.T) {
	year := 365 * 24 * time.Hour
	a, b := endpoint("a", 1, year), endpoint("b", 1, year)
	a.Fallback.Micro, a.Fallback.Period = 1000*limit.Micro, limit.Micro
	b.Fallback = a.Fallback
	synctest.Test(t, func(t *testing.T) { // time stands still
		l := limiter(a, b)
		var got [2]atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 2000 {
					n := rand.IntN(3)
					charges := [][]limit.Charge{
						{charge(a, 1)}, {charge(b, 1)}, {charge(a, 1), charge(b, 1)},
					}[n]
					if _, _, ok := l.Take(charges); !ok {
						continue
					}
					if n != 1 {
						got[0].Add(1)
					}
					if n != 0 {
						got[1].Add(1)
					}
				}
			})
		}
		wg.Wait()
		for i := range got {
			if n := got[i].Load(); n != 1000 {
				t.Errorf("bucket %d admitted %d, want its capacity of 1000", i, n)
			}
		}
	})
}

func TestLimiter_TakeAllocatesNothing(t *testing.T) {
	a, b := endpoint("a", 1000, time.Second), endpoint("b", 1000, time.Second)
	l := limiter(a, b)
	charges := []limit.Charge{charge(a, 1), charge(b, 1)}
	if n := testing.AllocsPerRun(5000, func() { l.Take(charges) }); n != 0 {
		t.Errorf("Take allocates %v times, want 0", n)
	}
}

func BenchmarkLimiter_Take(b *testing.B) {
	e := endpoint("e", 1000, time.Second)
	l := limiter(e)
	charges := []limit.Charge{charge(e, 1)}
	b.ReportAllocs()
	for b.Loop() {
		l.Take(charges)
	}
}

func ExampleLimiter() {
	tailor := &limit.Endpoint{
		Domain: "mesh", ID: "resumint.tailor", FailMode: limit.FailOpen,
		Fallback: limit.Rate{Micro: 2 * limit.Micro, Period: limit.Micro}, // 2 a second
	}
	l := emergency.New()
	l.Configure([]*limit.Endpoint{tailor})
	for range 3 {
		_, _, ok := l.Take([]limit.Charge{{Key: "k", Cost: 1, Endpoint: tailor}})
		fmt.Println(ok)
	}
	// Output:
	// true
	// true
	// false
}
