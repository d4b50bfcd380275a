package rls_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/pkg/rls"
)

// failing is a store that fails every call with one cause.
type failing failure.Cause

func (f failing) Submit(c *failure.Call) { c.Fail(failure.Cause(f)) }

// metering is an emergency limiter that has tokens left, or a wait of 1.2 s.
type metering bool

func (m metering) Take([]limit.Charge) (time.Duration, int, bool) {
	if m {
		return 0, 0, true
	}
	return 1200 * time.Millisecond, 0, false
}

// TestServer_AnswersByTheTable has every cell of the decision table but those of a store that answers.
func TestServer_AnswersByTheTable(t *testing.T) {
	outcomes := []struct {
		cause failure.Cause
		open  string // reason of a fail_open request that the emergency limiter admits
		shut  string // reason of a fail_closed request
	}{
		{failure.CauseDeadline, "REDIS_TIMEOUT", "FAIL_CLOSED"},
		{failure.CauseQueueFull, "REDIS_TIMEOUT", "FAIL_CLOSED"},
		{failure.CauseReset, "REDIS_CONNECTION_ERROR", "FAIL_CLOSED"},
		{failure.CauseReadOnly, "REDIS_CONNECTION_ERROR", "FAIL_CLOSED"},
		{failure.CauseNoScript, "REDIS_NOSCRIPT_RETRY", "FAIL_CLOSED"},
		{failure.CauseBreakerOpen, "CIRCUIT_OPEN", "CIRCUIT_OPEN"},
	}
	for _, o := range outcomes {
		for _, deny := range []rls.Deny{rls.DenyGRPCError, rls.DenyOverLimit} {
			t.Run(fmt.Sprintf("%v/%v", o.cause, deny), func(t *testing.T) {
				row{t, o.cause, deny}.admitted(o.open)
				row{t, o.cause, deny}.limited()
				row{t, o.cause, deny}.closed(o.shut, tailor("acme"), ingest("acme"))
				row{t, o.cause, deny}.closed(o.shut, ingest("acme"))
			})
		}
	}
}

// row asks for one row of the table.
type row struct {
	*testing.T
	cause failure.Cause
	deny  rls.Deny
}

func (r row) ask(m metering, in *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	r.Helper()
	guard, err := failure.NewGuard(failing(r.cause), nil, m, failure.GuardConfig{})
	if err != nil {
		r.Fatal(err)
	}
	return newServer(r.T, guard, rls.Config{Deny: r.deny}).ShouldRateLimit(r.Context(), in)
}

func (r row) admitted(reason string) {
	r.Helper()
	got, err := r.ask(true, ask(tailor("acme")))
	if err != nil {
		r.Fatal(err)
	}
	r.compare(got, ratelimitv3.RateLimitResponse_OK, reason, "resumint.tailor", nil)
}

func (r row) limited() {
	r.Helper()
	got, err := r.ask(false, ask(tailor("acme")))
	if err != nil {
		r.Fatal(err)
	}
	r.compare(got, ratelimitv3.RateLimitResponse_OVER_LIMIT, "EMERGENCY_LOCAL_LIMIT", "resumint.tailor",
		headers("EMERGENCY_LOCAL_LIMIT", "2"))
}

func (r row) closed(reason string, descriptors ...*commonv3.RateLimitDescriptor) {
	r.Helper()
	got, err := r.ask(true, ask(descriptors...))
	if r.deny == rls.DenyOverLimit {
		if err != nil {
			r.Fatal(err)
		}
		r.compare(got, ratelimitv3.RateLimitResponse_OVER_LIMIT, reason, "pdftalk.ingest", headers(reason, ""))
		return
	}
	if got != nil || status.Code(err) != codes.FailedPrecondition {
		r.Fatalf("ShouldRateLimit() = %v, %v, want FAILED_PRECONDITION", got, err)
	}
	text := status.Convert(err).Message()
	for _, want := range []string{reason, r.cause.String(), "pdftalk.ingest"} {
		if !strings.Contains(text, want) {
			r.Errorf("message %q does not name %q", text, want)
		}
	}
	if strings.Contains(text, "acme") {
		r.Errorf("message %q names the tenant", text)
	}
}

// compare checks an answer, which must have no numbers. The status of the last descriptor has the overall code.
func (r row) compare(
	got *ratelimitv3.RateLimitResponse, code ratelimitv3.RateLimitResponse_Code, reason, endpoint string,
	wantHeaders map[string]string,
) {
	r.Helper()
	if got.GetOverallCode() != code {
		r.Errorf("overall code = %v, want %v", got.GetOverallCode(), code)
	}
	want := make([]*ratelimitv3.RateLimitResponse_DescriptorStatus, len(got.GetStatuses()))
	for i := range want {
		want[i] = &ratelimitv3.RateLimitResponse_DescriptorStatus{Code: ratelimitv3.RateLimitResponse_OK}
	}
	want[len(want)-1].Code = code
	if diff := cmp.Diff(want, got.GetStatuses(), protocmp.Transform()); diff != "" {
		r.Errorf("statuses (-want +got):\n%s", diff)
	}
	version := map[string]float64{"resumint.tailor": 1, "pdftalk.ingest": 3}[endpoint]
	wantData := map[string]any{
		"decision": reason, "cause": r.cause.String(), "endpoint_id": endpoint, "policy_version": version,
		"degraded": true,
	}
	if diff := cmp.Diff(wantData, got.GetDynamicMetadata().AsMap()); diff != "" {
		r.Errorf("metadata (-want +got):\n%s", diff)
	}
	if wantHeaders == nil {
		wantHeaders = map[string]string{}
	}
	if diff := cmp.Diff(wantHeaders, headersOf(got)); diff != "" {
		r.Errorf("headers (-want +got):\n%s", diff)
	}
}
