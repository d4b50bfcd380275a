package load_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/honestlimit/ratelimit/internal/load"
)

const (
	codeOK        = ratelimitv3.RateLimitResponse_OK
	codeOverLimit = ratelimitv3.RateLimitResponse_OVER_LIMIT
)

func TestRun_OpenLoopKeepsItsSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := serve(t, ok)
		cfg.Rate, cfg.Duration = 300, 10*time.Second // a third of a millisecond is no whole number of nanoseconds
		report := runLoad(t, cfg)
		if len(s.arrived) != 3000 || report.All.Requests != 3000 {
			t.Fatalf("%d requests arrived and %d were reported, want 3000", len(s.arrived), report.All.Requests)
		}
		for i, at := range s.arrived {
			if want := time.Duration(math.Round(float64(i) * 1e9 / 300)); at != want {
				t.Fatalf("request %d arrived at %v, want %v", i, at, want)
			}
		}
	})
}

func TestRun_OpenLoopRampsLinearly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := serve(t, ok)
		cfg.Rate, cfg.Duration, cfg.Ramp = 100, 4*time.Second, 2*time.Second
		runLoad(t, cfg)
		var perHalf [8]int
		for _, at := range s.arrived {
			perHalf[at/(500*time.Millisecond)]++
		}
		// The rate at t is 50 t: from a to b it sends 25 (b^2 - a^2); then 50 each half second.
		want := [8]int{7, 18, 32, 43, 50, 50, 50, 50}
		if diff := cmp.Diff(want, perHalf); diff != "" {
			t.Errorf("arrivals in each half second (-want +got):\n%s", diff)
		}
	})
}

func TestRun_StalledServerIsChargedWithAllItDelays(t *testing.T) {
	for name, streams := range map[string]int{"a stream for each request": 128, "fewer streams than requests": 8} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, cfg := serve(t, func(ctx context.Context, r *request) (*response, error) {
					if at := time.Since(start); at >= time.Second && at < 2*time.Second {
						time.Sleep(2*time.Second - at)
					}
					return ok(ctx, r)
				})
				cfg.Rate, cfg.Duration, cfg.Streams = 100, 3*time.Second, streams
				report := runLoad(t, cfg)
				// Of those due in the stall all but the last, due 10 ms before its end, waited longer than that.
				if got := slower(t, report.All.Latency, 10*time.Millisecond); got != 99 {
					t.Errorf("%d requests took over 10 ms, want 99", got)
				}
				if got := slower(t, report.All.Latency, 500*time.Millisecond); got != 50 {
					t.Errorf("%d requests took over 500 ms, want 50: half of the stalled ones", got)
				}
				if got := report.All.Latency.Max; got != 1 {
					t.Errorf("the worst latency is %v s, want 1", got)
				}
				if report.NotOffered != 0 || report.All.Requests != 300 {
					t.Errorf("%d were answered and %d not offered, want 300 and 0", report.All.Requests, report.NotOffered)
				}
			})
		})
	}
}

func TestRun_CountsWhatCouldNotBeOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cfg := serve(t, func(ctx context.Context, r *request) (*response, error) {
			time.Sleep(100 * time.Millisecond) // 4 streams do 40 a second
			return ok(ctx, r)
		})
		cfg.Rate, cfg.Duration, cfg.Streams, cfg.Backlog = 100, 10*time.Second, 4, 20
		report := runLoad(t, cfg)
		if sum := report.All.Requests + report.NotOffered; sum != 1000 {
			t.Errorf("%d answered and %d not offered, want 1000 together", report.All.Requests, report.NotOffered)
		}
		if report.NotOffered < 570 || report.NotOffered > 580 { // 600 less the 20 in the backlog and 4 in flight
			t.Errorf("%d not offered, want about 576", report.NotOffered)
		}
		if report.SendDelayMax < 0.4 || report.SendDelayMax > 0.6 {
			t.Errorf("requests waited up to %v s, want 0.5: a backlog of 20 at 40 a second", report.SendDelayMax)
		}
	})
}

func TestRun_ClosedLoopWaitsForEachAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inFlight, most atomic.Int64
		_, cfg := serve(t, func(ctx context.Context, r *request) (*response, error) {
			most.Store(max(most.Load(), inFlight.Add(1)))
			defer inFlight.Add(-1)
			time.Sleep(10 * time.Millisecond)
			return ok(ctx, r)
		})
		cfg.Connections, cfg.Streams, cfg.Duration = 2, 3, time.Second
		report := runLoad(t, cfg)
		if most.Load() != 6 || report.All.Requests != 600 || report.All.RequestsPerSecond != 600 {
			t.Errorf("%d in flight, %d answered, %v a second, want 6, 600, 600",
				most.Load(), report.All.Requests, report.All.RequestsPerSecond)
		}
		if report.ConnectionsOpened != 2 || report.All.Latency.P50 != 0.01 {
			t.Errorf("%d connections, median %v s, want 2 and 0.01", report.ConnectionsOpened, report.All.Latency.P50)
		}
	})
}

func TestRun_ClosedLoopRampsItsWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := serve(t, func(ctx context.Context, r *request) (*response, error) {
			time.Sleep(time.Second)
			return ok(ctx, r)
		})
		cfg.Streams, cfg.Duration, cfg.Ramp = 4, time.Second, 800*time.Millisecond
		runLoad(t, cfg)
		want := []time.Duration{0, 200 * time.Millisecond, 400 * time.Millisecond, 600 * time.Millisecond}
		if diff := cmp.Diff(want, s.arrived); diff != "" {
			t.Errorf("first requests (-want +got):\n%s", diff)
		}
	})
}

func TestRun_WarmupIsSentAndNotReported(t *testing.T) {
	for name, rate := range map[string]float64{"open loop": 100, "closed loop": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, cfg := serve(t, func(ctx context.Context, r *request) (*response, error) {
					time.Sleep(10 * time.Millisecond)
					return ok(ctx, r)
				})
				cfg.Rate, cfg.Streams, cfg.Warmup, cfg.Duration = rate, 1, time.Second, 2*time.Second
				report := runLoad(t, cfg)
				if len(s.arrived) != 300 || report.All.Requests != 200 || report.All.Seconds != 2 {
					t.Errorf("%d sent, %d reported over %v s, want 300, 200, 2",
						len(s.arrived), report.All.Requests, report.All.Seconds)
				}
			})
		})
	}
}

func TestRun_SendsTheNumberOfRequests(t *testing.T) {
	for name, rate := range map[string]float64{"open loop": 1000, "closed loop": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, cfg := serve(t, func(ctx context.Context, r *request) (*response, error) {
					time.Sleep(time.Millisecond)
					return ok(ctx, r)
				})
				cfg.Rate, cfg.Requests = rate, 123
				report := runLoad(t, cfg)
				if len(s.arrived) != 123 || report.All.Requests != 123 {
					t.Errorf("%d sent, %d reported, want 123", len(s.arrived), report.All.Requests)
				}
			})
		})
	}
}

func TestRun_GivesUpWhatIsNotAnswered(t *testing.T) {
	for name, rate := range map[string]float64{"open loop": 10, "closed loop": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, cfg := serve(t, func(ctx context.Context, _ *request) (*response, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				})
				cfg.Rate, cfg.Streams, cfg.Requests, cfg.Drain = rate, 4, 10, 3*time.Second
				if rate == 0 {
					cfg.Requests = 4
				}
				report := runLoad(t, cfg)
				if report.All.Unanswered != cfg.Requests || report.All.Errors != 0 {
					t.Errorf("%d unanswered, %d errors, want %d, 0", report.All.Unanswered, report.All.Errors, cfg.Requests)
				}
				if report.All.Latency.Max < 3 {
					t.Errorf("worst latency %v s, want what they waited", report.All.Latency.Max)
				}
			})
		})
	}
}

func TestRun_TimeoutIsTheDeadlineOfEachRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cfg := serve(t, func(ctx context.Context, _ *request) (*response, error) {
			<-ctx.Done()
			return nil, status.FromContextError(ctx.Err()).Err()
		})
		cfg.Requests, cfg.Streams, cfg.Timeout = 5, 1, 50*time.Millisecond
		report := runLoad(t, cfg)
		want := []load.Answer{{Answer: "error", Reason: "DeadlineExceeded", Requests: 5}}
		if diff := cmp.Diff(want, report.All.Answers); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		if got := report.All.Latency.P50; got < 0.05 || got > 0.06 {
			t.Errorf("median %v s, want 0.05", got)
		}
	})
}

func TestRun_StopsWhenCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cfg := serve(t, func(ctx context.Context, r *request) (*response, error) {
			time.Sleep(10 * time.Millisecond)
			return ok(ctx, r)
		})
		cfg.Streams, cfg.Duration = 1, time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), 995*time.Millisecond)
		defer cancel()
		report, err := load.Run(ctx, cfg)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", err)
		}
		if report.All.Admitted != 99 || report.All.Unanswered != 1 {
			t.Errorf("%d admitted, %d unanswered, want 99 and 1", report.All.Admitted, report.All.Unanswered)
		}
	})
}

func TestRun_TellsAnswersApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []func() (*response, error){
			func() (*response, error) { return ok(context.Background(), nil) },
			func() (*response, error) { return &response{OverallCode: codeOverLimit}, nil },
			func() (*response, error) { return &response{}, nil },
			func() (*response, error) { return decided(codeOK, "ALLOWED", false), nil },
			func() (*response, error) { return decided(codeOK, "REDIS_TIMEOUT", true), nil },
			func() (*response, error) { return decided(codeOverLimit, "RATE_LIMITED", false), nil },
			func() (*response, error) { return nil, status.Error(codes.FailedPrecondition, "no") },
		}
		var n atomic.Int64
		_, cfg := serve(t, func(context.Context, *request) (*response, error) {
			return answers[int(n.Add(1)-1)%len(answers)]()
		})
		cfg.Requests = int64(2 * len(answers))
		report := runLoad(t, cfg)
		want := []load.Answer{
			{Answer: "OK", Reason: "ALLOWED", Requests: 2},
			{Answer: "OK", Reason: "OK", Requests: 2},
			{Answer: "OK", Reason: "REDIS_TIMEOUT", Requests: 2},
			{Answer: "OK", Reason: "UNKNOWN", Requests: 2},
			{Answer: "OVER_LIMIT", Reason: "OVER_LIMIT", Requests: 2},
			{Answer: "OVER_LIMIT", Reason: "RATE_LIMITED", Requests: 2},
			{Answer: "error", Reason: "FailedPrecondition", Requests: 2},
		}
		all := report.All
		if diff := cmp.Diff(want, all.Answers); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		got := [...]int64{all.Admitted, all.OverLimit, all.Errors, all.Degraded, all.Unanswered}
		if want := [...]int64{8, 4, 2, 2, 0}; got != want {
			t.Errorf("admitted, over limit, errors, degraded, unanswered = %v, want %v", got, want)
		}
	})
}

func TestRun_BoundsTheReasonsItTellsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		_, cfg := serve(t, func(context.Context, *request) (*response, error) {
			return decided(codeOK, fmt.Sprint("reason ", n.Add(1)), false), nil
		})
		cfg.Requests, cfg.Streams = 1000, 1
		report := runLoad(t, cfg)
		kinds := len(report.All.Answers)
		if kinds < 60 || kinds > 65 || report.All.Answers[0].Reason != "(other)" || report.All.Admitted != 1000 {
			t.Errorf("%d kinds of answers, the first %+v, want about 64 and the rest in one", kinds, report.All.Answers[0])
		}
	})
}

func TestRun_SendsWhatItWasTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := serve(t, ok)
		cfg.Descriptors = [][]load.Entry{
			{{Key: "endpoint_id", Value: "a"}, {Key: "tenant", Value: "{key}-{key}"}},
			{{Key: "all", Value: ""}},
		}
		cfg.Hits, cfg.Requests = 7, 1
		runLoad(t, cfg)
		got := s.asked[0]
		want := `domain:"mesh" ` +
			`descriptors:{entries:{key:"endpoint_id" value:"a"} entries:{key:"tenant" value:"0-0"}} ` +
			`descriptors:{entries:{key:"all"}} hits_addend:7`
		if text := strings.Join(strings.Fields(got.String()), " "); text != want {
			t.Errorf("sent\n%s\nwant\n%s", text, want)
		}
	})
}

func TestRun_DrawsKeys(t *testing.T) {
	const requests = 4_000
	tests := map[string]struct {
		dist      load.Dist
		keys      int
		key0      float64 // its share
		different int     // at least
	}{
		"hot":                         {load.Hot, 101, 0.9, 95},
		"hot, one key":                {load.Hot, 1, 1, 1},
		"uniform":                     {load.Uniform, 100, 0.01, 100},
		"zipf":                        {load.Zipf, 1000, 0.172, 200},
		"more than are encoded ahead": {load.Uniform, 10_000_000, 0, requests - 100},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, cfg := serve(t, ok)
				cfg.Dist, cfg.Keys, cfg.Requests, cfg.Seed = tt.dist, tt.keys, requests, 1
				runLoad(t, cfg)
				values := s.values()
				if got := float64(values["t0"]) / requests; math.Abs(got-tt.key0) > 0.02 {
					t.Errorf("key 0 has a share of %.3f, want %.3f", got, tt.key0)
				}
				if len(values) < tt.different || len(values) > tt.keys {
					t.Errorf("%d different keys of %d, want at least %d", len(values), tt.keys, tt.different)
				}
			})
		})
	}
}

func TestRun_SameSeedSameKeys(t *testing.T) {
	draw := func(t *testing.T, seed uint64) (drawn []string) {
		synctest.Test(t, func(t *testing.T) {
			s, cfg := serve(t, ok)
			cfg.Keys, cfg.Requests, cfg.Streams, cfg.Seed = 1000, 50, 1, seed
			runLoad(t, cfg)
			drawn = slices.Sorted(maps.Keys(s.values()))
		})
		return drawn
	}
	first := draw(t, 42)
	if diff := cmp.Diff(first, draw(t, 42)); diff != "" {
		t.Errorf("the same seed drew other keys:\n%s", diff)
	}
	if cmp.Equal(first, draw(t, 43)) {
		t.Error("another seed drew the same keys")
	}
}

func TestRun_MeasuresOvershoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		_, cfg := serve(t, func(_ context.Context, r *request) (*response, error) {
			// Key 0 is admitted always, key 1 every hundredth time.
			if r.GetDescriptors()[0].GetEntries()[0].GetValue() == "t0" || n.Add(1)%100 == 0 {
				return ok(context.Background(), nil)
			}
			return &response{OverallCode: codeOverLimit}, nil
		})
		cfg.Rate, cfg.Warmup, cfg.Duration, cfg.Keys, cfg.Hits, cfg.Seed = 200, time.Second, 9*time.Second, 2, 3, 1
		cfg.Limit = &load.Limit{PerSecond: 10, Burst: 20}
		o := runLoad(t, cfg).Overshoot
		if o.Keys != 2 || o.KeysOver != 1 || o.WorstKey != 0 {
			t.Errorf("%d keys, %d of them over, worst %d, want 2, 1, 0", o.Keys, o.KeysOver, o.WorstKey)
		}
		if o.Seconds < 9.9 || o.Seconds > 10 {
			t.Errorf("over %v s, want 10: the warm-up spends tokens too", o.Seconds)
		}
		allowed := 20 + 10*o.Seconds
		if got, want := o.Excess, float64(o.WorstAdmitted)-allowed; math.Abs(got-want) > 1e-6 {
			t.Errorf("excess %v, want %v", got, want)
		}
		if o.WorstAdmitted < 2700 || o.WorstAdmitted > 3300 || math.Abs(o.Allowed-2*allowed) > 1e-6 {
			t.Errorf("key 0 admitted %d hits, want about 3000; allowed %v, want %v", o.WorstAdmitted, o.Allowed, 2*allowed)
		}
	})
}
