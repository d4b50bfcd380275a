package rls_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/honestlimit/ratelimit/internal/memstore"
	"github.com/honestlimit/ratelimit/pkg/emergency"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/rls"
)

// onMemory is a server on the embedded store, as serve wires it.
func onMemory(tb testing.TB) *rls.Server {
	tb.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	guard, err := failure.NewGuard(store, nil, emergency.New(), failure.GuardConfig{})
	if err != nil {
		tb.Fatal(err)
	}
	return newServer(tb, guard, rls.Config{})
}

// Over real gRPC, with the store and the guard that serve uses: what the client is told must come true.
func TestServer_KeepsItsPromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, stop := dial(t, onMemory(t))
		defer stop()
		burst := ask(tailor("acme"))
		burst.HitsAddend = 200
		steps := []struct {
			after     time.Duration
			in        *ratelimitv3.RateLimitRequest
			want      ratelimitv3.RateLimitResponse_Code
			remaining uint32
			reset     int64
			retry     string
		}{
			{0, burst, ratelimitv3.RateLimitResponse_OK, 0, 2, ""},
			{0, ask(tailor("acme")), ratelimitv3.RateLimitResponse_OVER_LIMIT, 0, 2, "1"},
			{0, burst, ratelimitv3.RateLimitResponse_OVER_LIMIT, 0, 2, "2"},
			{0, ask(tailor("emca")), ratelimitv3.RateLimitResponse_OK, 199, 1, ""},
			{time.Second, ask(tailor("acme")), ratelimitv3.RateLimitResponse_OK, 99, 2, ""},
			{1010 * time.Millisecond, burst, ratelimitv3.RateLimitResponse_OK, 0, 2, ""},
			{0, ask(ingest("acme")), ratelimitv3.RateLimitResponse_OK, 999, 120, ""},
		}
		for i, s := range steps {
			time.Sleep(s.after)
			got, err := client.ShouldRateLimit(t.Context(), s.in)
			if err != nil {
				t.Fatal(err)
			}
			st := got.GetStatuses()[0]
			if got.GetOverallCode() != s.want || st.GetLimitRemaining() != s.remaining ||
				st.GetDurationUntilReset().GetSeconds() != s.reset || headersOf(got)["retry-after"] != s.retry {
				t.Errorf("step %d: got %v, want %+v", i, got, s)
			}
		}
	})
}

// All or nothing: a bucket that would admit is not charged when another one denies.
func TestServer_ChargesNothingWhenOneBucketDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := onMemory(t)
		drain := ask(tailor("acme"))
		drain.HitsAddend = 200
		for i, step := range []struct {
			in        *ratelimitv3.RateLimitRequest
			remaining []uint32
		}{
			{drain, []uint32{0}},
			{ask(ingest("acme"), tailor("acme")), []uint32{1000, 0}},
			{ask(ingest("acme")), []uint32{999}},
		} {
			got, err := s.ShouldRateLimit(t.Context(), step.in)
			if err != nil {
				t.Fatal(err)
			}
			for j, want := range step.remaining {
				if have := got.GetStatuses()[j].GetLimitRemaining(); have != want {
					t.Errorf("step %d: status %d has %d remaining, want %d", i, j, have, want)
				}
			}
		}
	})
}

// A hanging store costs a caller the budget, and no more than Envoy's own deadline leaves.
func TestServer_AnswersBeforeEnvoyGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard, err := failure.NewGuard(hanging{}, nil, metering(true), failure.GuardConfig{})
		if err != nil {
			t.Fatal(err)
		}
		client, stop := dial(t, newServer(t, guard, rls.Config{}))
		defer stop()
		for _, timeout := range []time.Duration{15 * time.Millisecond, 50 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			start := time.Now()
			got, err := client.ShouldRateLimit(ctx, ask(tailor("acme")))
			cancel()
			if err != nil {
				t.Fatalf("within %v: %v", timeout, err)
			}
			took := time.Since(start)
			if limit := min(timeout, failure.DefaultBudget); took > limit {
				t.Errorf("within %v: took %v, want at most %v", timeout, took, limit)
			}
			if reason := got.GetDynamicMetadata().AsMap()["decision"]; reason != "REDIS_TIMEOUT" {
				t.Errorf("within %v: decision = %v, want REDIS_TIMEOUT", timeout, reason)
			}
		}
	})
}

// hanging is a store that never completes a call.
type hanging struct{}

func (hanging) Submit(*failure.Call) {}

var _ rls.Decider = (*decider)(nil)
