package load_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/honestlimit/ratelimit/internal/load"
)

// breakable is a service that answers after a millisecond, refuses while it is broken and slow and degraded for the
// given time after it was mended.
type breakable struct {
	broken atomic.Bool
	until  atomic.Int64 // nanoseconds since start
	start  time.Time
	limp   time.Duration
}

func (b *breakable) answer(context.Context, *request) (*response, error) {
	time.Sleep(time.Millisecond)
	switch {
	case b.broken.Load():
		time.Sleep(19 * time.Millisecond)
		return nil, status.Error(codes.FailedPrecondition, "FAIL_CLOSED")
	case time.Since(b.start) < time.Duration(b.until.Load()):
		return decided(codeOK, "CIRCUIT_OPEN", true), nil
	default:
		return decided(codeOK, "ALLOWED", false), nil
	}
}

func (b *breakable) fault(at, lasting time.Duration) *load.Fault {
	return &load.Fault{
		At: at, For: lasting,
		Begin: func(context.Context) error { b.broken.Store(true); return nil },
		End: func(context.Context) error {
			b.until.Store(int64(time.Since(b.start) + b.limp))
			b.broken.Store(false)
			return nil
		},
	}
}

func TestRun_ReportsBeforeDuringAndAfterAFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &breakable{start: time.Now(), limp: 300 * time.Millisecond}
		_, cfg := serve(t, b.answer)
		cfg.Rate, cfg.Warmup, cfg.Duration = 100, time.Second, 4*time.Second
		cfg.Fault = b.fault(time.Second, 2*time.Second)
		f := runLoad(t, cfg).Fault
		if f == nil || f.Began != 1 || f.Ended != 3 || len(f.Phases) != 3 {
			t.Fatalf("fault %+v, want it from 1 to 3 s", f)
		}
		early, broken, late := f.Phases[0], f.Phases[1], f.Phases[2]
		if early.Name != "before" || early.Requests != 100 || early.Admitted != 100 || early.Seconds != 1 {
			t.Errorf("before: %+v, want 100 admitted in 1 s", early)
		}
		if broken.Name != "during" || broken.Errors < 198 || broken.Errors > 200 || broken.Latency.P50 != 0.02 {
			t.Errorf("during: %d errors, median %v s, want 200 and 0.02", broken.Errors, broken.Latency.P50)
		}
		if late.Name != "after" || late.Requests < 99 || late.Degraded < 28 || late.Degraded > 31 || late.Errors > 2 {
			t.Errorf("after: %d requests, %d degraded, %d errors, want 100, 30, 0", late.Requests, late.Degraded, late.Errors)
		}
		if !f.Recovered || f.Recovery < 0.3 || f.Recovery > 0.312 {
			t.Errorf("recovered %v after %v s, want after 0.3", f.Recovered, f.Recovery)
		}
		if f.Settled < 0.28 || f.Settled > 0.3 {
			t.Errorf("settled after %v s, want just below 0.3", f.Settled)
		}
	})
}

func TestRun_RequestThatIsCaughtByAFaultIsDuring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cfg := serve(t, func(ctx context.Context, r *request) (*response, error) {
			time.Sleep(1500 * time.Millisecond)
			return ok(ctx, r)
		})
		cfg.Rate, cfg.Duration = 1, 5*time.Second // due at 0, 1, 2, 3 and 4 s
		cfg.Fault = fault(2600*time.Millisecond, 100*time.Millisecond)
		f := runLoad(t, cfg).Fault
		got := [...]int64{f.Phases[0].Requests, f.Phases[1].Requests, f.Phases[2].Requests}
		if want := [...]int64{2, 1, 2}; got != want { // the one due at 2 s lived through the fault
			t.Errorf("before, during, after = %v, want %v", got, want)
		}
	})
}

func TestRun_FaultWithoutLengthLastsAsLongAsItTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cfg := serve(t, ok)
		cfg.Rate, cfg.Duration = 10, 5*time.Second
		cfg.Fault = &load.Fault{At: time.Second, Begin: func(context.Context) error {
			time.Sleep(700 * time.Millisecond)
			return nil
		}}
		if f := runLoad(t, cfg).Fault; f.Began != 1 || f.Ended != 1.7 {
			t.Errorf("from %v to %v s, want 1 to 1.7", f.Began, f.Ended)
		}
	})
}

func TestRun_MendsWhatItBroke(t *testing.T) {
	errBroken := errors.New("no such container")
	tests := map[string]struct {
		begin error
		stop  time.Duration // when the run is cancelled
		want  error
	}{
		"also if it did not quite break": {errBroken, time.Hour, errBroken},
		"also if the run is cancelled":   {nil, 1500 * time.Millisecond, context.DeadlineExceeded},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, cfg := serve(t, ok)
				cfg.Rate, cfg.Duration = 10, 10*time.Second
				mended := errors.New("not called")
				cfg.Fault = &load.Fault{
					At: time.Second, For: 5 * time.Second,
					Begin: func(context.Context) error { return tt.begin },
					End:   func(ctx context.Context) error { mended = ctx.Err(); return nil },
				}
				ctx, cancel := context.WithTimeout(t.Context(), tt.stop)
				defer cancel()
				began := time.Now()
				_, err := load.Run(ctx, cfg)
				if !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				if mended != nil {
					t.Errorf("End: %v, want it called with a context that lives", mended)
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("took %v, want it to end at once", took)
				}
			})
		})
	}
}

func TestRun_SaysIfTheFaultDidNotHappen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cfg := serve(t, ok)
		cfg.Rate, cfg.Requests = 10, 5
		cfg.Fault = &load.Fault{At: time.Minute, Begin: func(context.Context) error { return errors.New("begun") }}
		report, err := load.Run(t.Context(), cfg)
		if err == nil || report.Fault != nil || report.All.Requests != 5 {
			t.Errorf("error %v, fault %v, %d requests, want an error, none and 5", err, report.Fault, report.All.Requests)
		}
	})
}
