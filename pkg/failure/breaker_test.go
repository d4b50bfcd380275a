package failure_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

const ms = time.Millisecond

// rig is a breaker in a bubble, with its watch running and what it told.
type rig struct {
	*failure.Breaker
	t     *testing.T
	start time.Time

	mu    sync.Mutex
	moves []string
}

// breakerTest runs f in a bubble with a breaker without jitter.
func breakerTest(t *testing.T, cfg failure.BreakerConfig, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, start: time.Now()}
		cfg.Jitter = -1
		cfg.OnTransition = func(tr failure.Transition) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.moves = append(r.moves, fmt.Sprintf("%v %v->%v", tr.Trigger, tr.From, tr.To))
		}
		b, err := failure.NewBreaker(cfg)
		if err != nil {
			t.Fatal(err)
		}
		r.Breaker = b
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { b.Run(ctx) })
		f(r)
		cancel()
		wg.Wait()
	})
}

// until lets the bubble's clock run to at after the start.
func (r *rig) until(at time.Duration) {
	time.Sleep(time.Until(r.start.Add(at)))
	synctest.Wait()
}

func (r *rig) want(s failure.State) {
	r.t.Helper()
	if got := r.State(); got != s {
		r.t.Errorf("%v after the start: breaker is %v, want %v", time.Since(r.start), got, s)
	}
}

// trip is one round trip of d.
func (r *rig) trip(d time.Duration, c failure.Cause) {
	trip := r.Sent()
	time.Sleep(d)
	r.Answered(trip, c)
}

// open opens a closed breaker at once.
func (r *rig) open() {
	for range 5 {
		r.Failed(failure.CauseDial)
	}
	r.want(failure.Open)
}

// halfOpen opens the breaker and ends the quarantine by proof.
func (r *rig) halfOpen() {
	r.open()
	time.Sleep(500 * ms)
	r.Proved()
	r.want(failure.HalfOpen)
}

// untilHalfOpen proves the store again and again until the quarantine ends, and returns how long that took.
func (r *rig) untilHalfOpen() time.Duration {
	opened := time.Now()
	for r.State() == failure.Open {
		time.Sleep(10 * ms)
		r.Proved()
	}
	return time.Since(opened)
}

func TestBreaker_OpensAfterFailuresInARow(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		for range 4 {
			r.trip(ms, failure.CauseOOM)
		}
		r.want(failure.Closed)
		r.trip(ms, failure.CauseNone) // one success, and they are no longer in a row
		for range 4 {
			r.trip(ms, failure.CauseReadOnly)
		}
		r.want(failure.Closed)
		r.Failed(failure.CauseDial)
		r.want(failure.Open)
		if s := r.Snapshot(); s.LastCause != failure.CauseDial || s.Opened != 1 {
			t.Errorf("Snapshot = %+v, want the last cause dial, opened once", s)
		}
	})
}

func TestBreaker_AHiccupOf25msIsOneFailure(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		r.trip(25*ms, failure.CauseNone) // whatever number of requests rode on it
		synctest.Wait()
		if got := r.Snapshot().Failures; got != 1 {
			t.Errorf("a hiccup of 25 ms counts as %d failures, want 1", got)
		}
		r.trip(ms, failure.CauseNone)
		if got := r.Snapshot().Failures; got != 0 {
			t.Errorf("%d failures after a success, want 0", got)
		}
	})
}

func TestBreaker_SilenceOpensIt(t *testing.T) {
	for _, lanes := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("lanes=%d", lanes), func(t *testing.T) {
			breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
				r.trip(ms, failure.CauseNone)
				from := time.Since(r.start)
				for range lanes {
					r.Sent() // and never an answer
				}
				r.until(from + 119*ms)
				r.want(failure.Closed)
				r.until(from + 120*ms)
				r.want(failure.Open)
			})
		})
	}
}

// A stall is noticed whether the store was just used or idle for long, when the watch sleeps.
func TestBreaker_SilenceIsNoticedAfterIdling(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		for i := range 3 {
			from := time.Duration(i+1) * 40 * time.Second
			r.until(from)
			r.Sent()
			r.until(from + 120*ms)
			r.want(failure.Open)
			r.until(from + 30*time.Second + 120*ms)
			r.want(failure.HalfOpen)
			r.trip(ms, failure.CauseNone)
			r.want(failure.Closed)
		}
	})
}

func TestBreaker_AStallOf100msIsSurvived(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		for round := range 20 { // one stall after another, with a success between
			from := time.Since(r.start)
			trips := []failure.Trip{r.Sent(), r.Sent()}
			r.until(from + 100*ms)
			for _, trip := range trips {
				r.Answered(trip, failure.CauseNone)
			}
			if r.want(failure.Closed); r.t.Failed() {
				t.Fatalf("opened in round %d", round)
			}
			r.trip(ms, failure.CauseNone)
		}
	})
}

func TestBreaker_AStoreThatAlwaysTakes30msOpensIt(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		for i := range 5 {
			r.want(failure.Closed)
			r.trip(30*ms, failure.CauseNone)
			if got := r.Snapshot().Failures; i < 4 && got != i+1 {
				t.Errorf("%d failures after %d late answers", got, i+1)
			}
		}
		r.want(failure.Open)
	})
}

// Two connections take turns, so there is never silence; each late answer counts by itself.
func TestBreaker_LateAnswersCountWithoutSilence(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		var wg sync.WaitGroup
		for lane := range 2 {
			wg.Go(func() {
				time.Sleep(time.Duration(lane) * 15 * ms)
				for range 4 {
					r.trip(30*ms, failure.CauseNone)
				}
			})
		}
		// The silence of the first 20 ms is one failure and covers the answers at 30 and 45; those at 60, 75, 90 and
		// 105 are four more.
		r.until(104 * ms)
		r.want(failure.Closed)
		r.until(105 * ms)
		r.want(failure.Open)
		wg.Wait()
	})
}

func TestBreaker_APingBreaksSilenceButProvesNothing(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		r.Sent()
		for range 20 { // a lane alone in its silence, the other one answers pings
			trip := r.Sent()
			time.Sleep(10 * ms)
			r.Alive(trip)
		}
		r.want(failure.Closed)
		for range 4 {
			r.trip(ms, failure.CauseOOM)
		}
		trip := r.Sent()
		time.Sleep(ms)
		r.Alive(trip)
		r.trip(ms, failure.CauseOOM)
		r.want(failure.Open)
	})
}

func TestBreaker_QuarantineEndsByItself(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		r.open()
		if _, c := r.Admit(); c != failure.CauseBreakerOpen {
			t.Errorf("Admit of an open breaker = %v, want breaker_open", c)
		}
		r.until(30*time.Second - 1)
		r.want(failure.Open)
		r.until(30 * time.Second)
		r.want(failure.HalfOpen)
		p, c := r.Admit()
		if c != failure.CauseNone {
			t.Fatalf("the probe was refused: %v", c)
		}
		if _, c := r.Admit(); c != failure.CauseProbing {
			t.Errorf("a second probe: %v, want probing", c)
		}
		r.Settle(p, failure.CauseNone)
		r.want(failure.Closed)
		want := []string{
			"failures closed->open", "quarantine_over open->half_open", "success half_open->closed",
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if diff := cmp.Diff(want, r.moves); diff != "" {
			t.Errorf("transitions (-want +got):\n%s", diff)
		}
	})
}

func TestBreaker_AProofEndsTheQuarantineEarly(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		r.open()
		r.until(499 * ms)
		r.Proved()
		r.want(failure.Open)
		r.until(500 * ms)
		r.Proved()
		r.want(failure.HalfOpen) // never Closed: a decision must succeed first
		r.Proved()
		r.want(failure.HalfOpen)
		r.trip(ms, failure.CauseNone)
		r.want(failure.Closed)
	})
}

func TestBreaker_NoEarlyEnd(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{NoEarlyEnd: true}, func(r *rig) {
		r.open()
		r.until(29 * time.Second)
		r.Proved()
		r.want(failure.Open)
	})
}

// A store that stands still for 150 ms every nine seconds is away for the shortest quarantine each time, whether or not
// it once flapped: it works most of the time, and so must the limits.
func TestBreaker_AStoreThatHiccupsIsTrustedAgain(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		r.open()
		for range 2 { // it flaps at first
			r.untilHalfOpen()
			r.Failed(failure.CauseReset)
		}
		var away []time.Duration
		for range 6 {
			away = append(away, r.untilHalfOpen())
			r.trip(ms, failure.CauseNone)
			time.Sleep(9 * time.Second)
			r.open()
		}
		want := []time.Duration{2 * time.Second, time.Second, 500 * ms, 500 * ms, 500 * ms, 500 * ms}
		if diff := cmp.Diff(want, away); diff != "" {
			t.Errorf("quarantines (-want +got):\n%s", diff)
		}
	})
}

// Another master owes nothing to the old one: it is tried at once, however short the quarantine was yet and however
// often the old one had failed, and what is heard of the old one afterwards does not count against it.
func TestBreaker_AnotherMasterIsTriedAtOnce(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		old := r.Sent()
		r.open()
		for range 4 { // flapping
			r.untilHalfOpen()
			old = r.Sent()
			r.Failed(failure.CauseReset)
		}
		r.Moved()
		r.want(failure.HalfOpen) // never Closed: a decision must succeed first
		r.Answered(old, failure.CauseIOTimeout)
		r.want(failure.HalfOpen)
		r.trip(ms, failure.CauseNone)
		r.want(failure.Closed)
	})
}

// A half-open breaker may have given its only permit to a request that the old master never answers.
func TestBreaker_AMoveFreesTheProbes(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		r.halfOpen()
		lost, cause := r.Admit()
		if cause != failure.CauseNone {
			t.Fatalf("the probe is refused: %v", cause)
		}
		if _, cause = r.Admit(); cause != failure.CauseProbing {
			t.Fatalf("a second probe: %v, want probing", cause)
		}
		r.Moved()
		r.want(failure.HalfOpen)
		r.Settle(lost, failure.CauseDeadline)
		r.want(failure.HalfOpen)
		probe, cause := r.Admit()
		if cause != failure.CauseNone {
			t.Fatalf("the new master's probe is refused: %v", cause)
		}
		r.Settle(probe, failure.CauseNone)
		r.want(failure.Closed)
	})
}

func TestBreaker_AMoveForgetsFailures(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		for range 4 {
			r.Failed(failure.CauseReset)
		}
		r.Moved()
		r.want(failure.Closed)
		for range 4 {
			r.Failed(failure.CauseReset)
		}
		r.want(failure.Closed)
	})
}

// A new master that fails at once is spaced like any store that does: from the shortest quarantine on.
func TestBreaker_AMoveStartsTheSpacingAnew(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		r.open()
		for range 3 {
			r.Moved()
			r.want(failure.HalfOpen)
			r.Failed(failure.CauseNoReplicas)
			if got := r.untilHalfOpen(); got != 500*ms {
				t.Errorf("the quarantine of a new master ended after %v, want 500 ms", got)
			}
			r.Failed(failure.CauseNoReplicas)
		}
	})
}

func TestBreaker_AMoveHonoursNoEarlyEnd(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{NoEarlyEnd: true}, func(r *rig) {
		r.open()
		r.Moved()
		r.want(failure.Open)
	})
}

// A store that flaps gets ever longer quarantines: by failing its probes, or by failing soon after it closed.
func TestBreaker_AFlappingStoreIsLeftAlone(t *testing.T) {
	for name, flap := range map[string]func(r *rig){
		"every probe fails": func(r *rig) { r.Failed(failure.CauseReset) },
		"it closes and fails again": func(r *rig) {
			r.trip(ms, failure.CauseNone)
			r.want(failure.Closed)
			r.open()
		},
	} {
		t.Run(name, func(t *testing.T) {
			breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
				r.open()
				for _, spacing := range []time.Duration{
					500 * ms, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second,
				} {
					if got := r.untilHalfOpen(); got < spacing || got > spacing+10*ms {
						t.Errorf("quarantine ended after %v, want %v", got, spacing)
					}
					flap(r)
				}
				// From here on the quarantine itself is the bound.
				if got := r.untilHalfOpen(); got > 30*time.Second+10*ms {
					t.Errorf("quarantine ended after %v, want 30 s at most", got)
				}
				// A store that stayed well for a whole quarantine starts from the shortest again.
				r.trip(ms, failure.CauseNone)
				time.Sleep(30 * time.Second)
				r.open()
				time.Sleep(500 * ms)
				r.Proved()
				r.want(failure.HalfOpen)
			})
		})
	}
}

func TestBreaker_ResultsOfAnOlderGenerationAreIgnored(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		early, failing := r.Sent(), r.Sent()
		stale, _ := r.Admit()
		r.halfOpen()
		r.Answered(early, failure.CauseNone)
		r.want(failure.HalfOpen)
		r.Answered(failing, failure.CauseReset)
		r.want(failure.HalfOpen)
		r.Settle(stale, failure.CauseReset)
		r.want(failure.HalfOpen)
		r.Answered(failure.Trip{}, failure.CauseReset)
		r.want(failure.HalfOpen)
		probe, _ := r.Admit()
		r.trip(ms, failure.CauseNone)
		r.want(failure.Closed)
		r.Settle(probe, failure.CauseReset) // its generation is over
		if got := r.Snapshot().Failures; got != 0 {
			t.Errorf("%d failures, want 0", got)
		}
	})
}

func TestBreaker_ALostProbeDoesNotWedgeIt(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
		r.halfOpen()
		if _, c := r.Admit(); c != failure.CauseNone { // and never settled
			t.Fatal(c)
		}
		time.Sleep(250*ms - 1)
		if _, c := r.Admit(); c != failure.CauseProbing {
			t.Errorf("Admit before the permit expired = %v, want probing", c)
		}
		time.Sleep(time.Nanosecond)
		if _, c := r.Admit(); c != failure.CauseNone {
			t.Errorf("Admit after the permit expired = %v, want a permit", c)
		}
	})
}

func TestBreaker_AProbeThatNeverReachedTheStoreGivesItsPermitBack(t *testing.T) {
	for _, c := range []failure.Cause{
		failure.CauseCanceled, failure.CauseQueueFull, failure.CauseDropped, failure.CauseOverload,
	} {
		t.Run(c.String(), func(t *testing.T) {
			breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
				r.halfOpen()
				p, _ := r.Admit()
				r.Settle(p, c)
				r.want(failure.HalfOpen)
				if _, c := r.Admit(); c != failure.CauseNone {
					t.Errorf("Admit = %v, want a permit", c)
				}
			})
		})
	}
}

func TestBreaker_HalfOpenReopensOnFailureAndOnSilence(t *testing.T) {
	for name, fail := range map[string]func(r *rig){
		"a probe that failed": func(r *rig) {
			p, _ := r.Admit()
			r.Settle(p, failure.CauseOOM)
		},
		"an error reply":  func(r *rig) { r.trip(ms, failure.CauseOOM) },
		"a lost dial":     func(r *rig) { r.Failed(failure.CauseDial) },
		"silence":         func(r *rig) { r.Sent(); time.Sleep(20 * ms); synctest.Wait() },
		"a late answer":   func(r *rig) { r.trip(30*ms, failure.CauseNone) },
		"a late ping too": func(r *rig) { t := r.Sent(); time.Sleep(21 * ms); r.Alive(t) },
	} {
		t.Run(name, func(t *testing.T) {
			breakerTest(t, failure.BreakerConfig{}, func(r *rig) {
				r.halfOpen()
				fail(r)
				r.want(failure.Open)
			})
		})
	}
}

func TestBreaker_PermitsOfAnOlderHalfOpenDoNotBlockTheNext(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{ProbeTTL: time.Hour}, func(r *rig) {
		r.halfOpen()
		if _, c := r.Admit(); c != failure.CauseNone {
			t.Fatal(c)
		}
		r.Failed(failure.CauseDial)
		time.Sleep(time.Second)
		r.Proved()
		r.want(failure.HalfOpen)
		if _, c := r.Admit(); c != failure.CauseNone {
			t.Errorf("Admit = %v, want a permit", c)
		}
	})
}

func TestBreaker_SeveralProbes(t *testing.T) {
	breakerTest(t, failure.BreakerConfig{Probes: 3}, func(r *rig) {
		r.halfOpen()
		for i := range 4 {
			want := failure.CauseNone
			if i == 3 {
				want = failure.CauseProbing
			}
			if _, c := r.Admit(); c != want {
				t.Errorf("probe %d: %v, want %v", i, c, want)
			}
		}
	})
}

func TestBreaker_JitterTakesOffAtMostItsPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told failure.Transition
		b, err := failure.NewBreaker(failure.BreakerConfig{
			Jitter: 0.5, Rand: func() float64 { return 0.5 },
			OnTransition: func(tr failure.Transition) { told = tr },
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			b.Failed(failure.CauseDial)
		}
		want := failure.Transition{
			From: failure.Closed, To: failure.Open, Trigger: failure.TriggerFailures, Cause: failure.CauseDial,
			Quarantine: 22500 * ms, EarliestProof: 375 * ms,
		}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("transition (-want +got):\n%s", diff)
		}
	})
}

func TestBreakerConfig_ValidateFindsAllFaults(t *testing.T) {
	_, err := failure.NewBreaker(failure.BreakerConfig{
		Failures: -1, Quarantine: -1, Budget: -1, SilenceInterval: -1, EarlyEnd: -1, ProbeTTL: -1, Jitter: 1,
	})
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 7 {
		t.Errorf("NewBreaker found %v, want 7 faults", err)
	}
}

// Whatever arrives from whatever goroutine, the breaker neither wedges nor panics, and ends closed when the store is
// well again.
func TestBreaker_SurvivesConcurrentEvents(t *testing.T) {
	var moves atomic.Int64
	breakerTest(t, failure.BreakerConfig{EarlyEnd: ms, Quarantine: 50 * ms}, func(r *rig) {
		var wg sync.WaitGroup
		for worker := range 8 {
			wg.Go(func() {
				for i := range 500 {
					switch (i + worker) % 5 {
					case 0:
						r.trip(time.Duration(i%3)*ms, failure.CauseNone)
					case 1, 2:
						r.trip(ms, failure.CauseReset)
					case 3:
						p, c := r.Admit()
						if c == failure.CauseNone {
							moves.Add(1)
						}
						r.Settle(p, failure.CauseOOM)
					case 4:
						r.Proved()
					}
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		for range 10 {
			r.trip(ms, failure.CauseNone)
		}
		r.want(failure.Closed)
		if moves.Load() == 0 {
			t.Error("not one permit was given")
		}
	})
}

// breakerIn is a breaker that is Closed or Open, outside any bubble.
func breakerIn(tb testing.TB, state failure.State) *failure.Breaker {
	tb.Helper()
	b, err := failure.NewBreaker(failure.BreakerConfig{})
	if err != nil {
		tb.Fatal(err)
	}
	for state == failure.Open && b.State() != state {
		b.Failed(failure.CauseDial)
	}
	return b
}

func BenchmarkBreaker_Admit(b *testing.B) {
	for _, state := range []failure.State{failure.Closed, failure.Open} {
		b.Run("state="+state.String(), func(b *testing.B) {
			br := breakerIn(b, state)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					br.Admit()
				}
			})
		})
	}
}

func ExampleBreaker() {
	b, err := failure.NewBreaker(failure.BreakerConfig{Failures: 2})
	if err != nil {
		panic(err)
	}
	b.Answered(b.Sent(), failure.CauseReadOnly)
	b.Failed(failure.CauseDial)
	_, refused := b.Admit()
	fmt.Println(b.State(), refused)
	// Output: open breaker_open
}
