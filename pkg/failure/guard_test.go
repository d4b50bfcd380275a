package failure_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	open   = &limit.Endpoint{Domain: "mesh", ID: "resumint.tailor", FailMode: limit.FailOpen}
	closed = &limit.Endpoint{Domain: "mesh", ID: "pdftalk.ingest", FailMode: limit.FailClosed}
)

func charges(endpoints ...*limit.Endpoint) []limit.Charge {
	var all []limit.Charge
	for i, e := range endpoints {
		all = append(all, limit.Charge{Key: fmt.Sprint(i), Cost: 1, Endpoint: e})
	}
	return all
}

// storeFunc is a store that does what a test says.
type storeFunc func(c *failure.Call)

func (f storeFunc) Submit(c *failure.Call) { f(c) }

// silent never answers.
func silent(*failure.Call) {}

// meter is an emergency limiter that admits as long as it has tokens, and counts what it was asked.
type meter struct {
	tokens, asked atomic.Int64
}

func (m *meter) Take(charges []limit.Charge) (time.Duration, int, bool) {
	m.asked.Add(1)
	if m.tokens.Add(-1) < 0 {
		return 3 * time.Second, len(charges) - 1, false
	}
	return 0, 0, true
}

func newGuard(t testing.TB, s failure.Store, b *failure.Breaker, tokens int64, cfg failure.GuardConfig) (*failure.Guard, *meter) {
	t.Helper()
	m := &meter{}
	m.tokens.Store(tokens)
	g, err := failure.NewGuard(s, b, m, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g, m
}

func decide(ctx context.Context, g *failure.Guard, charges []limit.Charge) failure.Decision {
	return g.Decide(ctx, charges, make([]limit.Result, len(charges)))
}

// The whole decision table of the specification, spelled out: every cause that a store can give, under both fail
// modes, with and without an emergency token.
func TestGuard_DecisionTable(t *testing.T) {
	rows := []struct {
		causes                []failure.Cause
		open, exhausted, shut failure.Reason
	}{
		{
			[]failure.Cause{
				failure.CauseDeadline, failure.CauseQueueFull, failure.CauseDropped, failure.CauseOverload,
				failure.CauseIOTimeout,
			},
			failure.RedisTimeout, failure.EmergencyLocalLimit, failure.FailClosed,
		},
		{
			[]failure.Cause{
				failure.CauseNotConnected, failure.CauseDial, failure.CauseReset, failure.CauseClosed,
				failure.CauseReadOnly, failure.CauseLoading, failure.CauseMasterDown, failure.CauseClusterDown,
				failure.CauseMoved, failure.CauseTryAgain, failure.CauseNoReplicas, failure.CauseOOM,
				failure.CauseBusy, failure.CauseMisconf, failure.CauseAuth, failure.CauseNoPerm,
				failure.CauseMaxClients, failure.CauseProtocol, failure.CauseScript, failure.CauseOther,
			},
			failure.RedisConnectionError, failure.EmergencyLocalLimit, failure.FailClosed,
		},
		{
			[]failure.Cause{failure.CauseNoScript},
			failure.RedisNoScriptRetry, failure.EmergencyLocalLimit, failure.FailClosed,
		},
		{
			[]failure.Cause{failure.CauseBreakerOpen, failure.CauseProbing},
			failure.CircuitOpen, failure.EmergencyLocalLimit, failure.CircuitOpen,
		},
	}
	seen := map[failure.Cause]bool{ // these four reach no row
		failure.CauseNone: true, failure.CauseUnmatched: true, failure.CauseCostAboveMax: true,
		failure.CauseCanceled: true,
	}
	for _, row := range rows {
		for _, cause := range row.causes {
			seen[cause] = true
			t.Run(cause.String(), func(t *testing.T) {
				g, m := newGuard(t, storeFunc(func(c *failure.Call) { c.Fail(cause) }), nil, 1, failure.GuardConfig{})
				want := failure.Decision{Reason: row.shut, Cause: cause}
				if diff := cmp.Diff(want, decide(t.Context(), g, charges(closed))); diff != "" {
					t.Errorf("fail_closed (-want +got):\n%s", diff)
				}
				if m.asked.Load() != 0 {
					t.Error("fail_closed asked the emergency limiter")
				}
				want = failure.Decision{Reason: row.open, Cause: cause, Allowed: true}
				if diff := cmp.Diff(want, decide(t.Context(), g, charges(open))); diff != "" {
					t.Errorf("fail_open (-want +got):\n%s", diff)
				}
				want = failure.Decision{Reason: row.exhausted, Cause: cause, RetryAfter: 3 * time.Second}
				if diff := cmp.Diff(want, decide(t.Context(), g, charges(open))); diff != "" {
					t.Errorf("fail_open without a token (-want +got):\n%s", diff)
				}
			})
		}
	}
	for _, c := range failure.Causes() {
		if !seen[c] {
			t.Errorf("cause %v is in no row of this test", c)
		}
	}
}

func TestDecision_Answer(t *testing.T) {
	want := map[failure.Reason]failure.Answer{
		failure.Allowed: failure.OK, failure.RateLimited: failure.OverLimit,
		failure.FailClosed: failure.Unavailable, failure.CircuitOpen: failure.Unavailable,
		failure.RedisTimeout: failure.Unavailable, failure.RedisConnectionError: failure.Unavailable,
		failure.RedisNoScriptRetry: failure.Unavailable, failure.EmergencyLocalLimit: failure.OverLimit,
	}
	for _, r := range failure.Reasons {
		admitted := failure.Decision{Reason: r, Allowed: true}
		if got := admitted.Answer(); got != failure.OK {
			t.Errorf("%v admitted is answered %v, want ok", r, got)
		}
		denied := failure.Decision{Reason: r}
		if w := want[r]; r != failure.Allowed && denied.Answer() != w {
			t.Errorf("%v denied is answered %v, want %v", r, denied.Answer(), w)
		}
	}
	if len(failure.Reasons) != 8 {
		t.Errorf("%d reasons, want 8", len(failure.Reasons))
	}
}

func TestGuard_VerdictOfSeveralBuckets(t *testing.T) {
	ok := func(remaining int64) limit.Result { return limit.Result{Allowed: true, Remaining: remaining} }
	no := func(retry time.Duration) limit.Result { return limit.Result{RetryAfter: retry} }
	tests := map[string]struct {
		results []limit.Result
		want    failure.Decision
	}{
		"all admit: the tightest governs": {
			[]limit.Result{ok(5), ok(2), ok(9)},
			failure.Decision{Reason: failure.Allowed, Allowed: true, Governing: 1},
		},
		"one denies: all is denied": {
			[]limit.Result{ok(5), no(time.Second), ok(1)},
			failure.Decision{Reason: failure.RateLimited, RetryAfter: time.Second, Governing: 1},
		},
		"two deny: the longest wait counts": {
			[]limit.Result{no(time.Second), ok(0), no(3 * time.Second), no(2 * time.Second)},
			failure.Decision{Reason: failure.RateLimited, RetryAfter: 3 * time.Second, Governing: 2},
		},
		"one will never admit: there is nothing to wait for": {
			[]limit.Result{no(time.Second), no(limit.Never)},
			failure.Decision{Reason: failure.RateLimited, Cause: failure.CauseCostAboveMax, Governing: 1},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g, _ := newGuard(t, storeFunc(func(c *failure.Call) { copy(c.Results, tt.results); c.Finish() }), nil, 0, failure.GuardConfig{})
			results := make([]limit.Result, len(tt.results))
			got := g.Decide(t.Context(), charges(make([]*limit.Endpoint, len(results))...), results)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.results, results); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGuard_AFailClosedPolicyWinsAndSpendsNoToken(t *testing.T) {
	g, m := newGuard(t, storeFunc(func(c *failure.Call) { c.Fail(failure.CauseReset) }), nil, 5, failure.GuardConfig{})
	want := failure.Decision{Reason: failure.FailClosed, Cause: failure.CauseReset, Governing: 1}
	if diff := cmp.Diff(want, decide(t.Context(), g, charges(open, closed, open))); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	if n := m.asked.Load(); n != 0 {
		t.Errorf("the emergency limiter was asked %d times, want 0", n)
	}
}

func TestGuard_TheEmergencyLimiterNamesWhoGoverns(t *testing.T) {
	g, _ := newGuard(t, storeFunc(func(c *failure.Call) { c.Fail(failure.CauseReset) }), nil, 0, failure.GuardConfig{})
	if d := decide(t.Context(), g, charges(open, open, open)); d.Governing != 2 {
		t.Errorf("decision = %+v, want charge 2 to govern, which the limiter blamed", d)
	}
}

func TestGuard_DecidesWithinTheBudgetWhateverTheStoreDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGuard(t, storeFunc(silent), nil, 1<<40, failure.GuardConfig{})
		start := time.Now()
		var wg sync.WaitGroup
		for range 500 {
			wg.Go(func() {
				d := decide(context.Background(), g, charges(open))
				if took := time.Since(start); took > failure.DefaultBudget || d.Reason != failure.RedisTimeout {
					t.Errorf("decided %v after %v, want REDIS_TIMEOUT within %v", d.Reason, took, failure.DefaultBudget)
				}
			})
		}
		wg.Wait()
		if n := g.InFlight(); n != 0 {
			t.Errorf("%d in flight after all were decided", n)
		}
	})
}

func TestGuard_AnswersBeforeTheCallersOwnDeadline(t *testing.T) {
	tests := map[string]struct {
		deadline, want time.Duration
		cause          failure.Cause
	}{
		"far off":    {time.Second, 19 * ms, failure.CauseDeadline},
		"near":       {10 * ms, 8 * ms, failure.CauseDeadline},
		"too near":   {2 * ms, 0, failure.CauseDropped},
		"passed":     {-ms, 0, failure.CauseDropped},
		"just right": {21 * ms, 19 * ms, failure.CauseDeadline},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, _ := newGuard(t, storeFunc(silent), nil, 0, failure.GuardConfig{})
				start := time.Now()
				ctx, cancel := context.WithDeadline(context.Background(), start.Add(tt.deadline))
				defer cancel()
				d := decide(ctx, g, charges(closed))
				if got := time.Since(start); got != tt.want || d.Cause != tt.cause {
					t.Errorf("decided after %v by %v, want %v by %v", got, d.Cause, tt.want, tt.cause)
				}
			})
		})
	}
}

// A caller that goes away is evidence of nothing: the breaker hears neither success nor failure, a probe's permit
// returns, and no emergency token is spent on an answer that nobody hears.
func TestGuard_CancellationCountsForNothing(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		r.halfOpen()
		g, m := newGuard(r.t, storeFunc(silent), r.Breaker, 5, failure.GuardConfig{})
		for range 10 {
			ctx, cancel := context.WithCancel(context.Background())
			go func() { time.Sleep(ms); cancel() }()
			if d := decide(ctx, g, charges(open)); d.Cause != failure.CauseCanceled || d.Allowed {
				t.Errorf("decision = %+v, want denied by canceled", d)
			}
			r.want(failure.HalfOpen)
		}
		if n := m.asked.Load(); n != 0 {
			t.Errorf("%d emergency tokens were asked for, want 0", n)
		}
	})
}

// An answer that comes after its caller left must not show up in the next request, whose call is the same memory.
func TestGuard_LateAnswersReachNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var owed []*failure.Call
		g, _ := newGuard(t, storeFunc(func(c *failure.Call) { owed = append(owed, c) }), nil, 0, failure.GuardConfig{})
		for range 50 {
			if d := decide(t.Context(), g, charges(closed)); d.Cause != failure.CauseDeadline {
				t.Fatalf("decision = %+v, want a timeout", d)
			}
			late := owed[len(owed)-1]
			if late.Charges[0].Endpoint != closed {
				t.Fatal("the charges of an abandoned call were taken from the store")
			}
			late.Results[0] = limit.Result{Allowed: true, Remaining: 99}
			late.Finish()
		}
	})
}

// The answer and the timer in the same instant: either may win, and the next request starts clean.
func TestGuard_AnAnswerAtTheLastInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answering := true
		g, _ := newGuard(t, storeFunc(func(c *failure.Call) {
			if answering {
				time.AfterFunc(19*ms, func() { c.Results[0].Allowed = true; c.Finish() })
			}
		}), nil, 0, failure.GuardConfig{})
		got := map[failure.Reason]int{}
		for i := range 400 {
			answering = i%2 == 0
			d := decide(context.Background(), g, charges(closed))
			if got[d.Reason]++; !answering && d.Cause != failure.CauseDeadline {
				t.Fatalf("request %d, which nobody answers, got %+v", i, d)
			}
		}
		if got[failure.Allowed] == 0 || got[failure.Allowed]+got[failure.FailClosed] != 400 {
			t.Errorf("answers = %v", got)
		}
	})
}

func TestGuard_ConcurrentRequestsGetTheirOwnAnswers(t *testing.T) {
	lane := make(chan *failure.Call, 1024)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c := range lane {
			c.Results[0] = limit.Result{Allowed: true, Remaining: c.Charges[0].Cost}
			c.Finish()
		}
	}()
	g, _ := newGuard(t, storeFunc(func(c *failure.Call) { lane <- c }), nil, 0, failure.GuardConfig{Budget: time.Minute})
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			results := make([]limit.Result, 1)
			for i := range 2000 {
				cost := int64(worker*10_000 + i)
				d := g.Decide(t.Context(), []limit.Charge{{Cost: cost, Endpoint: closed}}, results)
				if !d.Allowed || results[0].Remaining != cost {
					t.Errorf("request %d got the answer of %d", cost, results[0].Remaining)
					return
				}
			}
		})
	}
	wg.Wait()
	close(lane)
	<-done
}

func TestGuard_ShedsAtTheInFlightCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGuard(t, storeFunc(silent), nil, 0, failure.GuardConfig{MaxInFlight: 3})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { decide(context.Background(), g, charges(closed)) })
		}
		synctest.Wait()
		start := time.Now()
		d := decide(t.Context(), g, charges(closed))
		if d.Cause != failure.CauseOverload || d.Reason != failure.FailClosed || time.Since(start) != 0 {
			t.Errorf("decision = %+v after %v, want FAIL_CLOSED by overload at once", d, time.Since(start))
		}
		wg.Wait()
		if d := decide(t.Context(), g, charges(closed)); d.Cause != failure.CauseDeadline {
			t.Errorf("decision after the rush = %+v, want to ask the store again", d)
		}
	})
}

func TestGuard_AStoresPanicIsTheCallersAndLeavesNothingBehind(t *testing.T) {
	bug := "index out of range"
	for name, submit := range map[string]storeFunc{
		"in submit":        func(*failure.Call) { panic(bug) },
		"in its goroutine": func(c *failure.Call) { go c.Panic(bug) },
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := newGuard(t, submit, nil, 0, failure.GuardConfig{Budget: time.Minute})
			for range 3 {
				func() {
					defer func() {
						if got := recover(); got != bug {
							t.Errorf("Decide panicked with %v, want %v", got, bug)
						}
					}()
					decide(t.Context(), g, charges(open))
				}()
			}
			if n := g.InFlight(); n != 0 {
				t.Errorf("%d in flight, want 0", n)
			}
		})
	}
}

func TestGuard_AnOpenBreakerAsksNobody(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		var asked atomic.Int64
		g, _ := newGuard(r.t, storeFunc(func(c *failure.Call) { asked.Add(1); c.Results[0].Allowed = true; c.Finish() }), r.Breaker, 0, failure.GuardConfig{})
		r.open()
		if d := decide(context.Background(), g, charges(closed)); d.Reason != failure.CircuitOpen {
			t.Errorf("decision = %+v, want CIRCUIT_OPEN", d)
		}
		if asked.Load() != 0 {
			t.Error("an open breaker let a request through")
		}
		time.Sleep(500 * ms)
		r.Proved()
		if d := decide(context.Background(), g, charges(closed)); d.Reason != failure.Allowed {
			t.Errorf("decision of the probe = %+v, want ALLOWED", d)
		}
		r.want(failure.Closed)
	})
}

// lane is a store with one connection: it sends what is queued as one round trip, and tells the breaker.
type lane struct {
	breaker *failure.Breaker
	queue   chan *failure.Call
	// answer blocks for the length of a round trip.
	answer func(ctx context.Context)
}

func (l *lane) Submit(c *failure.Call) {
	select {
	case l.queue <- c:
	default:
		c.Fail(failure.CauseQueueFull)
	}
}

func (l *lane) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case c := <-l.queue:
			batch := []*failure.Call{c}
			for len(l.queue) > 0 {
				batch = append(batch, <-l.queue)
			}
			trip := l.breaker.Sent()
			l.answer(ctx)
			l.breaker.Answered(trip, failure.CauseNone)
			for _, c := range batch {
				for i := range c.Results {
					c.Results[i] = limit.Result{Allowed: true}
				}
				c.Finish()
			}
		}
	}
}

// offered sends requests evenly for d and counts the answers by reason.
func offered(g *failure.Guard, perSecond int, d time.Duration) map[failure.Reason]int {
	var mu sync.Mutex
	var wg sync.WaitGroup
	got := map[failure.Reason]int{}
	start := time.Now()
	for i := range int(d.Seconds() * float64(perSecond)) {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(perSecond))))
		wg.Go(func() {
			r := decide(context.Background(), g, charges(closed)).Reason
			mu.Lock()
			got[r]++
			mu.Unlock()
		})
	}
	wg.Wait()
	return got
}

// freezer is a store that answers in 1 ms, except that it is frozen during [from, to).
func freezer(from, to time.Duration) func(context.Context) {
	start := time.Now()
	return func(ctx context.Context) {
		wake := start.Add(to)
		if now := time.Since(start); now < from || now >= to {
			wake = time.Now().Add(ms)
		}
		select {
		case <-time.After(time.Until(wake)):
		case <-ctx.Done():
		}
	}
}

// withLane runs f with a guard before a store of one lane.
func withLane(t *testing.T, from, to time.Duration, f func(r *rig, g *failure.Guard)) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		l := &lane{breaker: r.Breaker, queue: make(chan *failure.Call, 4096), answer: freezer(from, to)}
		g, _ := newGuard(r.t, l, r.Breaker, 0, failure.GuardConfig{})
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { l.run(ctx) })
		f(r, g)
		cancel()
		wg.Wait()
	})
}

func TestGuard_AStallOf100msAt10000ASecondDoesNotOpenTheBreaker(t *testing.T) {
	withLane(t, 50*ms, 150*ms, func(r *rig, g *failure.Guard) {
		got := offered(g, 10_000, 300*ms)
		r.want(failure.Closed)
		if len(r.moves) != 0 {
			t.Errorf("the breaker moved: %v", r.moves)
		}
		if got[failure.FailClosed] == 0 || got[failure.Allowed] < 1800 {
			t.Errorf("answers = %v, want the stall to cost about 1,000 of 3,000", got)
		}
	})
}

func TestGuard_SilenceOpensTheBreakerAfter120msAtAnyLoad(t *testing.T) {
	for _, perSecond := range []int{1, 10_000} {
		t.Run(fmt.Sprint(perSecond), func(t *testing.T) {
			withLane(t, 0, time.Hour, func(r *rig, g *failure.Guard) {
				var wg sync.WaitGroup
				wg.Go(func() { offered(g, perSecond, max(200*ms, time.Second/time.Duration(perSecond))) })
				r.until(119 * ms)
				r.want(failure.Closed)
				r.until(121 * ms)
				r.want(failure.Open)
				wg.Wait()
			})
		})
	}
}

func TestGuard_AHiccupWith500InFlightIsOneFailure(t *testing.T) {
	withLane(t, 0, 25*ms, func(r *rig, g *failure.Guard) {
		var wg sync.WaitGroup
		for range 500 {
			wg.Go(func() { decide(context.Background(), g, charges(closed)) })
		}
		r.until(22 * ms)
		if got := r.Snapshot().Failures; got != 1 {
			t.Errorf("%d failures, want 1", got)
		}
		wg.Wait()
		r.until(26 * ms)
		r.want(failure.Closed)
	})
}

func TestGuardConfig_ValidateFindsFaults(t *testing.T) {
	for _, cfg := range []failure.GuardConfig{{Budget: -1}, {Margin: -1}, {MaxInFlight: -1}, {Budget: ms, Slack: ms}} {
		if _, err := failure.NewGuard(storeFunc(silent), nil, &meter{}, cfg); err == nil {
			t.Errorf("NewGuard accepts %+v", cfg)
		}
	}
	if _, err := failure.NewGuard(nil, nil, &meter{}, failure.GuardConfig{}); err == nil {
		t.Error("NewGuard accepts no store")
	}
}

func BenchmarkGuard_Decide(b *testing.B) {
	for _, state := range []failure.State{failure.Closed, failure.Open} {
		b.Run("breaker="+state.String(), func(b *testing.B) {
			br := breakerIn(b, state)
			g, _ := newGuard(b, storeFunc(func(c *failure.Call) { c.Finish() }), br, 0, failure.GuardConfig{})
			b.ReportAllocs()
			b.SetParallelism(max(1, 8/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(pb *testing.PB) {
				ch, results := charges(closed), make([]limit.Result, 1)
				for pb.Next() {
					g.Decide(context.Background(), ch, results)
				}
			})
		})
	}
}

func ExampleGuard() {
	dead := storeFunc(func(c *failure.Call) { c.Fail(failure.CauseDial) })
	tokens := &meter{}
	tokens.tokens.Store(1)
	g, err := failure.NewGuard(dead, nil, tokens, failure.GuardConfig{})
	if err != nil {
		panic(err)
	}
	for _, e := range []*limit.Endpoint{closed, open, open} {
		d := decide(context.Background(), g, charges(e))
		fmt.Println(d.Answer(), d.Reason, d.Cause)
	}
	// Output:
	// unavailable FAIL_CLOSED dial
	// ok REDIS_CONNECTION_ERROR dial
	// over_limit EMERGENCY_LOCAL_LIMIT dial
}
