package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/pkg/policy"
)

func first(tb testing.TB, content string) *policy.Policy {
	tb.Helper()
	return parse(tb, content).Domain("mesh").Policies()[0]
}

func TestParse_limits(t *testing.T) {
	rate := func(micro, period int64) limit.Rate { return limit.Rate{Micro: micro, Period: period} }
	const second = 1_000_000
	for _, tt := range []struct {
		field string
		want  limit.Limit
	}{
		{"token_bucket: {rate: 10/s, burst: 20}", limit.NewTokenBucket(20_000_000, rate(10_000_000, second))},
		{"token_bucket: {rate: 10/s}", limit.NewTokenBucket(10_000_000, rate(10_000_000, second))},
		{"token_bucket: {rate: 3/min}", limit.NewTokenBucket(1_000_000, rate(3_000_000, 60*second))},
		{"token_bucket: {rate: 1.5/s}", limit.NewTokenBucket(2_000_000, rate(1_500_000, second))},
		{"token_bucket: {rate: 0.5/sec}", limit.NewTokenBucket(1_000_000, rate(500_000, second))},
		{"token_bucket: {rate: 1/second}", limit.NewTokenBucket(1_000_000, rate(1_000_000, second))},
		{"token_bucket: {rate: 6000/m}", limit.NewTokenBucket(100_000_000, rate(6_000_000_000, 60*second))},
		{"token_bucket: {rate: 1/hour}", limit.NewTokenBucket(1_000_000, rate(1_000_000, 3600*second))},
		{"token_bucket: {rate: 1/d}", limit.NewTokenBucket(1_000_000, rate(1_000_000, 86400*second))},
		{"token_bucket: {rate: 1/week}", limit.NewTokenBucket(1_000_000, rate(1_000_000, 7*86400*second))},
		{"token_bucket: {rate: 1/year}", limit.NewTokenBucket(1_000_000, rate(1_000_000, 365*86400*second))},
		{"token_bucket: {rate: 1000000/s}", limit.NewTokenBucket(1_000_000_000_000, rate(1_000_000_000_000, second))},
		{"token_bucket: {rate: 100/10s}", limit.NewTokenBucket(10_000_000, rate(100_000_000, 10*second))},
		{"token_bucket: {rate: 1/ms}", limit.NewTokenBucket(1_000_000_000, rate(1_000_000, 1000))},
		{
			"token_bucket: {refill_rate_micro_per_sec: 1_500_000, capacity_micro: 2500000}",
			limit.NewTokenBucket(2_500_000, rate(1_500_000, second)),
		},
		{"token_bucket: {refill_rate_micro_per_sec: 1, burst: 0x10}", limit.NewTokenBucket(16_000_000, rate(1, second))},
		{"sliding_window: {limit: 1000, window: 60s}", limit.NewSlidingWindow(1000, time.Minute)},
		{"sliding_window: {limit: 1, window: 250ms}", limit.NewSlidingWindow(1, 250*time.Millisecond)},
		{"sliding_window: {limit: 1, window: 1us}", limit.NewSlidingWindow(1, time.Microsecond)},
		{"sliding_window: {limit: 1, window: 7d}", limit.NewSlidingWindow(1, 7*24*time.Hour)},
		{"sliding_window: {limit: 1_000_000_000, window: 366d}", limit.NewSlidingWindow(1_000_000_000, 366*24*time.Hour)},
		{"sliding_window: {limit: 5, window_size_micro: 1500000}", limit.NewSlidingWindow(5, 1500*time.Millisecond)},
	} {
		t.Run(tt.field, func(t *testing.T) {
			p := first(t, onePolicy(tt.field))
			if p.Limit != tt.want {
				t.Errorf("Limit = %+v, want %+v", p.Limit, tt.want)
			}
			if p.MinCost != 1 || p.MaxCost != tt.want.Tokens() {
				t.Errorf("costs from %d to %d, want from 1 to %d", p.MinCost, p.MaxCost, tt.want.Tokens())
			}
			if err := p.Limit.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestParse_defaults(t *testing.T) {
	p := first(t, onePolicy())
	if p.Version != 1 {
		t.Errorf("Version = %d, want 1", p.Version)
	}
	if p.Endpoint.FailMode != limit.FailClosed || p.Endpoint.Fallback != (limit.Rate{}) {
		t.Errorf("Endpoint = %+v, want fail_closed without fallback", p.Endpoint)
	}
}

func TestParse_fallback(t *testing.T) {
	want := limit.Rate{Micro: 5_000_000, Period: 1_000_000}
	for _, field := range []string{"fallback_rate_per_process: 5/s", "fallback_rate_per_process_micro: 5000000"} {
		p := first(t, onePolicy("fail_mode: fail_open", field))
		if p.Endpoint.FailMode != limit.FailOpen || p.Endpoint.Fallback != want {
			t.Errorf("%s: Endpoint = %+v, want fail_open with %+v", field, p.Endpoint, want)
		}
	}
}

func TestSet_spreadDomain(t *testing.T) {
	set := parse(t, onePolicy()+"---\n"+strings.Replace(onePolicy(), "mesh", "edge", 1)+"---\n"+
		onePolicy("endpoint_id: a", "descriptor: [{key: other}]")+"---\n")
	if diff := cmp.Diff([]string{"edge", "mesh"}, set.Domains()); diff != "" {
		t.Errorf("Domains (-want +got):\n%s", diff)
	}
	var ids []string
	for _, p := range set.Domain("mesh").Policies() {
		ids = append(ids, p.Endpoint.ID)
	}
	if diff := cmp.Diff([]string{"a", "x"}, ids); diff != "" {
		t.Errorf("Policies (-want +got):\n%s", diff)
	}
	if set.Domain("absent") != nil {
		t.Error("Domain(absent) is not nil")
	}
}

func TestSet_Version(t *testing.T) {
	two := func(a, b string) string { return a + "---\n" + b }
	other := func(fields ...string) string {
		return onePolicy(append([]string{"endpoint_id: y", "descriptor: [{key: l}]"}, fields...)...)
	}
	a, b := onePolicy(), other()
	base := parse(t, two(a, b)).Version()
	for name, content := range map[string]string{
		"another order":    two(b, a),
		"another spelling": two("# comment\n"+a, other("token_bucket: {refill_rate_micro_per_sec: 10000000, burst: 20}")),
	} {
		if got := parse(t, content).Version(); got != base {
			t.Errorf("%s: Version = %s, want %s", name, got, base)
		}
	}
	versions := map[string]string{base: "the base"}
	for name, content := range map[string]string{
		"another rate":       two(a, other("token_bucket: {rate: 11/s, burst: 20}")),
		"another version":    two(a, other("policy_version: 2")),
		"another cost":       two(a, other("min_cost: 2")),
		"another fail mode":  two(a, other("fail_mode: fail_open", "fallback_rate_per_process: 1/s")),
		"another fallback":   two(a, other("fail_mode: fail_open", "fallback_rate_per_process: 2/s")),
		"another descriptor": two(a, other("descriptor: [{key: l, value: x}]")),
		"a shared bucket":    two(a, other("descriptor: [{key: l, shared: true}]")),
		"another id":         two(a, other("endpoint_id: z")),
		"a policy less":      a,
		"another domain":     strings.ReplaceAll(two(a, b), "mesh", "edge"),
	} {
		got := parse(t, content).Version()
		if other, found := versions[got]; found {
			t.Errorf("%s has the version of %s", name, other)
		}
		versions[got] = name
	}
}
