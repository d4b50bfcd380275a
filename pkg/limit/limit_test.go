package limit_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

const (
	second = int64(limit.Micro)
	minute = 60 * second
	year   = 365 * 24 * 3600 * second
	epoch  = 1_800_000_000 * second
)

func perSecond(tokens int64) limit.Rate {
	return limit.Rate{Micro: tokens * limit.Micro, Period: second}
}

func bucket(capacity int64, rate limit.Rate) limit.Limit {
	return limit.NewTokenBucket(capacity*limit.Micro, rate)
}

// step is one charge at a moment, and what must come of it.
type step struct {
	at, cost int64 // at: microseconds after the first step
	want     limit.Result
}

func run(t *testing.T, l limit.Limit, steps []step) {
	t.Helper()
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	var s limit.State
	for i, st := range steps {
		var got limit.Result
		s, got = l.Take(s, epoch+st.at, st.cost)
		if diff := cmp.Diff(st.want, got); diff != "" {
			t.Errorf("step %d: Take(at %d, cost %d) (-want +got):\n%s", i, st.at, st.cost, diff)
		}
	}
}

func allowed(remaining int64, reset time.Duration) limit.Result {
	return limit.Result{Allowed: true, Remaining: remaining, ResetAfter: reset}
}

func denied(remaining int64, retry, reset time.Duration) limit.Result {
	return limit.Result{Remaining: remaining, RetryAfter: retry, ResetAfter: reset}
}

func TestLimit_TakeFromTokenBucket(t *testing.T) {
	tests := map[string]struct {
		limit limit.Limit
		steps []step
	}{
		"burst, then the rate": {bucket(2, perSecond(1)), []step{
			{0, 1, allowed(1, time.Second)},
			{0, 1, allowed(0, 2*time.Second)},
			{0, 1, denied(0, time.Second, 2*time.Second)},
			{second - 1, 1, denied(0, time.Microsecond, time.Second+time.Microsecond)},
			{second, 1, allowed(0, 2*time.Second)},
		}},
		"a cost of 0 asks for one and charges nothing": {bucket(1, perSecond(1)), []step{
			{0, 0, allowed(1, 0)},
			{0, 1, allowed(0, time.Second)},
			{0, 0, denied(0, time.Second, time.Second)},
			{second, 0, allowed(1, 0)},
			{second, 1, allowed(0, time.Second)},
		}},
		"a cost above the capacity never fits": {bucket(3, perSecond(1)), []step{
			{0, 4, denied(3, limit.Never, 0)},
			{0, 3, allowed(0, 3*time.Second)},
		}},
		"a denied charge takes nothing": {bucket(5, perSecond(1)), []step{
			{0, 3, allowed(2, 3*time.Second)},
			{0, 3, denied(2, time.Second, 3*time.Second)},
			{0, 2, allowed(0, 5*time.Second)},
		}},
		"a step back of the clock neither mints nor locks": {bucket(1, perSecond(1)), []step{
			{0, 1, allowed(0, time.Second)},
			{-3600 * second, 1, denied(0, time.Second, time.Second)},
			{-3599 * second, 1, allowed(0, time.Second)},
		}},
		"a jump forward fills it once": {bucket(2, perSecond(1)), []step{
			{0, 2, allowed(0, 2*time.Second)},
			{100 * year, 3, denied(2, limit.Never, 0)},
			{100 * year, 2, allowed(0, 2*time.Second)},
		}},
		"a rate that no microsecond divides": {bucket(1, limit.Rate{Micro: limit.Micro, Period: 7}), []step{
			{0, 1, allowed(0, 7*time.Microsecond)},
			{6, 1, denied(0, time.Microsecond, time.Microsecond)},
			{7, 1, allowed(0, 7*time.Microsecond)},
		}},
		"the largest bucket at the slowest rate": {
			bucket(limit.MaxTokens, limit.Rate{Micro: limit.Micro, Period: year}),
			[]step{
				{0, limit.MaxTokens, allowed(0, limit.Forever)},
				{0, 1, denied(0, 365*24*time.Hour, limit.Forever)},
				{year, 1, allowed(0, limit.Forever)},
				{2*year - 1, 1, denied(0, time.Microsecond, limit.Forever)},
			},
		},
		"the largest bucket at the fastest rate": {bucket(limit.MaxTokens, perSecond(limit.MaxRate)), []step{
			{0, limit.MaxTokens, allowed(0, 1000*time.Second)},
			{1, 2, denied(1, time.Microsecond, 1000*time.Second-time.Microsecond)},
			{2, 2, allowed(0, 1000*time.Second)},
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { run(t, tt.limit, tt.steps) })
	}
}

func TestLimit_TakeFromSlidingWindow(t *testing.T) {
	perMinute := limit.NewSlidingWindow(10, time.Minute)
	tests := map[string]struct {
		limit limit.Limit
		steps []step
	}{
		"a full window must end and decay": {perMinute, []step{
			{0, 10, allowed(0, 2*time.Minute)},
			// In the next window at 6 s, 90 % of 10 still count, so one fits.
			{0, 1, denied(0, 66*time.Second, 2*time.Minute)},
			{66*second - 1, 1, denied(0, time.Microsecond, 54*time.Second+time.Microsecond)},
			{66 * second, 1, allowed(0, 114*time.Second)},
		}},
		"the previous window decays": {perMinute, []step{
			{0, 8, allowed(2, 2*time.Minute)},
			{minute, 2, allowed(0, 2*time.Minute)},
			// 8 of before must come down to 3: that is after 5/8 of the window.
			{minute, 5, denied(0, 37500*time.Millisecond, 2*time.Minute)},
			{minute + 37500*1000, 5, allowed(0, 82500*time.Millisecond)},
		}},
		"two idle windows forget": {perMinute, []step{
			{0, 10, allowed(0, 2*time.Minute)},
			{2 * minute, 10, allowed(0, 2*time.Minute)},
		}},
		"a cost of 0 asks for one and charges nothing": {perMinute, []step{
			{0, 0, allowed(10, 0)},
			{0, 10, allowed(0, 2*time.Minute)},
			{0, 0, denied(0, 66*time.Second, 2*time.Minute)},
		}},
		"a cost above the limit never fits": {perMinute, []step{{0, 11, denied(10, limit.Never, 0)}}},
		"a step back of the clock keeps the count": {perMinute, []step{
			{0, 10, allowed(0, 2*time.Minute)},
			{-3600 * second, 1, denied(0, 66*time.Second, 2*time.Minute)},
			{-3600*second + 66*second, 1, allowed(0, 114*time.Second)},
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { run(t, tt.limit, tt.steps) })
	}
}

// randomLimit covers the whole allowed range, slow and large ones as often as usual ones.
func randomLimit(r *rand.Rand) limit.Limit {
	tokens := 1 + r.Int64N([]int64{5, 1000, limit.MaxTokens}[r.IntN(3)])
	period := 1 + r.Int64N([]int64{1000, minute, limit.MaxPeriod}[r.IntN(3)])
	if r.IntN(2) == 0 {
		return limit.NewSlidingWindow(tokens, time.Duration(period)*time.Microsecond)
	}
	most := limit.MaxRate * min(period, second)
	l := limit.NewTokenBucket(tokens*limit.Micro+r.Int64N(limit.Micro), limit.Rate{Micro: 1 + r.Int64N(most), Period: period})
	if l.Capacity > limit.MaxTokens*limit.Micro {
		l.Capacity = limit.MaxTokens * limit.Micro
	}
	return l
}

// RetryAfter must be exact: a microsecond earlier the same cost is denied, at that time it is admitted.
func TestLimit_RetryAfterIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var checked int
	for range 20_000 {
		l := randomLimit(r)
		if l.Validate() != nil {
			continue
		}
		var s limit.State
		now := epoch
		for range 5 {
			cost := 1 + r.Int64N(l.Tokens())
			var got limit.Result
			s, got = l.Take(s, now, cost)
			if wait := got.RetryAfter.Microseconds(); !got.Allowed && wait < 1<<50 {
				checked++
				if _, early := l.Take(s, now+wait-1, cost); early.Allowed {
					t.Fatalf("%+v: cost %d at %+v is admitted before its RetryAfter of %d µs", l, cost, s, wait)
				}
				if _, due := l.Take(s, now+wait, cost); !due.Allowed {
					t.Fatalf("%+v: cost %d at %+v is denied after its RetryAfter of %d µs", l, cost, s, wait)
				}
			}
			now += r.Int64N(2 * l.Period)
		}
	}
	if checked < 1000 {
		t.Errorf("only %d denials were checked", checked)
	}
}

// A token bucket never admits more than its capacity plus what the rate makes, however its charges are spread, and
// loses not a microtoken to rounding.
func TestLimit_TokenBucketLosesAndMintsNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		rate := limit.Rate{Micro: 1 + r.Int64N(5*limit.Micro), Period: 1 + r.Int64N(1_000_000)}
		if rate.Validate() != nil {
			continue
		}
		l := bucket(1000, rate)
		s, _ := l.Take(limit.State{}, epoch, 1000)
		now, spent := epoch, int64(1000)
		for range 200 {
			// Steps too short for more than a token or two, so that nothing is lost to the brim.
			now += r.Int64N(max(2, 2*rate.Period*limit.Micro/rate.Micro))
			var got limit.Result
			if s, got = l.Take(s, now, 1); got.Allowed {
				spent++
			}
		}
		made := new(big.Int).Mul(big.NewInt(now-epoch), big.NewInt(rate.Micro))
		made.Div(made, big.NewInt(rate.Period))
		want := 1000*limit.Micro + made.Int64() - spent*limit.Micro
		if s = l.Advance(s, now); s.Level != want {
			t.Fatalf("%+v: %d microtokens left, want %d", l, s.Level, want)
		}
	}
}

// No span of one window ever sees more than twice the limit, and a steady flood gets the limit in the long run.
func TestLimit_SlidingWindowHoldsUnderFlood(t *testing.T) {
	l := limit.NewSlidingWindow(100, time.Second)
	var s limit.State
	var admitted int64
	const windows = 50
	for now := epoch; now < epoch+windows*second; now += 1000 {
		var got limit.Result
		if s, got = l.Take(s, now, 1); got.Allowed {
			admitted++
		}
	}
	if most := int64((windows + 1) * 100); admitted > most || admitted < windows*100*9/10 {
		t.Errorf("a flood of %d windows got %d through, want at most %d and at least 90 %% of it", windows, admitted, most)
	}
}

func TestLimit_Validate(t *testing.T) {
	tests := map[string]struct {
		limit limit.Limit
		valid bool
	}{
		"one a year":               {bucket(1, limit.Rate{Micro: limit.Micro, Period: year}), true},
		"slower than one a year":   {bucket(1, limit.Rate{Micro: limit.Micro / 2, Period: year}), false},
		"a million a second":       {bucket(1, perSecond(1_000_000)), true},
		"more than that":           {bucket(1, perSecond(1_000_001)), false},
		"a billion tokens":         {bucket(1_000_000_000, perSecond(1)), true},
		"more than a billion":      {bucket(1_000_000_001, perSecond(1)), false},
		"less than a token":        {limit.NewTokenBucket(limit.Micro-1, perSecond(1)), false},
		"no rate":                  {bucket(1, limit.Rate{}), false},
		"window of a microsecond":  {limit.NewSlidingWindow(1, time.Microsecond), true},
		"window below one":         {limit.NewSlidingWindow(1, time.Nanosecond), false},
		"window of a year":         {limit.NewSlidingWindow(1, 366*24*time.Hour), true},
		"window longer than that":  {limit.NewSlidingWindow(1, 367*24*time.Hour), false},
		"a window of nothing":      {limit.NewSlidingWindow(0, time.Second), false},
		"the zero limit":           {limit.Limit{}, false},
		"an algorithm of nobody's": {limit.Limit{Algorithm: 9, Capacity: 1, Period: 1}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := tt.limit.Validate(); (err == nil) != tt.valid {
				t.Errorf("Validate(%+v) = %v, want valid: %v", tt.limit, err, tt.valid)
			}
		})
	}
}

func TestLimit_Window(t *testing.T) {
	if got, want := bucket(200, perSecond(100)).Window(), 2*time.Second; got != want {
		t.Errorf("Window of 200 tokens at 100/s = %v, want %v", got, want)
	}
	if got, want := limit.NewSlidingWindow(5, time.Minute).Window(), time.Minute; got != want {
		t.Errorf("Window = %v, want %v", got, want)
	}
}

// A reload that changes the limit under the same version keeps the bucket: what was spent stays spent.
func TestLimit_AChangedLimitKeepsItsBucket(t *testing.T) {
	slow := bucket(10, limit.Rate{Micro: limit.Micro, Period: minute + 1}) // prime to microtokens: leaves a rest
	s, _ := slow.Take(limit.State{}, epoch, 10)
	s, _ = slow.Take(s, epoch+minute, 0)
	s = slow.Advance(s, epoch+minute)
	if s.Rest == 0 {
		t.Fatal("the rate leaves no rest to test with")
	}
	tests := map[string]struct {
		limit limit.Limit
		want  limit.Result
	}{
		"a faster rate": {bucket(10, perSecond(1)), denied(0, time.Microsecond, 9*time.Second+time.Microsecond)},
		"less capacity": {bucket(1, perSecond(1)), denied(0, time.Microsecond, time.Microsecond)},
		"more capacity": {bucket(20, perSecond(1)), denied(0, time.Microsecond, 19*time.Second+time.Microsecond)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, got := tt.limit.Take(s, epoch+minute, 1); got != tt.want {
				t.Errorf("Take = %+v, want %+v", got, tt.want)
			}
		})
	}
}

func BenchmarkLimit_Take(b *testing.B) {
	for name, l := range map[string]limit.Limit{
		"algorithm=token_bucket":   bucket(1_000_000, perSecond(1_000_000)),
		"algorithm=sliding_window": limit.NewSlidingWindow(1_000_000, time.Minute),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var s limit.State
			now := epoch
			for b.Loop() {
				now++
				s, _ = l.Take(s, now, 1)
			}
		})
	}
}

func ExampleLimit_Take() {
	l := limit.NewTokenBucket(2*limit.Micro, limit.Rate{Micro: limit.Micro, Period: limit.Micro}) // 1/s, burst 2
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	var state limit.State
	for range 3 {
		var r limit.Result
		state, r = l.Take(state, now, 1)
		fmt.Println(r.Allowed, r.Remaining, r.RetryAfter)
	}
	// Output:
	// true 1 0s
	// true 0 0s
	// false 0 1s
}
