package e2e_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// several is a policy file of which one request can meet several.
const several = `
domain: mesh
policies:
  - endpoint_id: wide
    descriptor: [{key: wide}]
    token_bucket: {rate: 1/day, burst: 5}
    fail_mode: fail_open
    fallback_rate_per_process: 1/min
  - endpoint_id: narrow
    descriptor: [{key: narrow}]
    token_bucket: {rate: 1/day, burst: 2}
    fail_mode: fail_open
    fallback_rate_per_process: 1/min
  - endpoint_id: strict
    descriptor: [{key: strict}]
    sliding_window: {limit: 4, window: 1h}
    fail_mode: fail_closed
`

// Of several policies one denies: then none is charged, whichever stands first, on either store.
func TestSeveral_AllOrNothing(t *testing.T) {
	for name, flags := range map[string]func(*testing.T) []string{
		"embedded store": func(*testing.T) []string { return nil },
		"redis":          func(t *testing.T) []string { st := newStore(t, &secrets{}); return st.at(st.URL()) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, several, flags(t)...)
			a, b, c := about("wide", "acme"), about("narrow", "acme"), about("strict", "acme")
			p.service.awaitServing(t, p)
			for i, left := range [][]uint32{{4, 1, 3}, {3, 0, 2}} {
				want := verdict{0, ok, "ALLOWED", "none", "narrow", []ratelimitv3.RateLimitResponse_Code{ok, ok, ok}, left}
				p.check(t, []string{"the first", "the second"}[i], want, p.ask(t, a, b, c))
			}
			for range 3 { // what is not charged does not run out
				p.check(t, "denied by the middle one", verdict{
					0, over, "RATE_LIMITED", "none", "narrow", []ratelimitv3.RateLimitResponse_Code{ok, over, ok}, []uint32{3, 0, 2},
				}, p.ask(t, a, b, c))
				p.check(t, "denied by the first one", verdict{
					0, over, "RATE_LIMITED", "none", "narrow", []ratelimitv3.RateLimitResponse_Code{over, ok}, []uint32{0, 3},
				}, p.ask(t, b, a))
			}
			p.check(t, "those with room", verdict{
				0, ok, "ALLOWED", "none", "strict", []ratelimitv3.RateLimitResponse_Code{ok, ok}, []uint32{2, 1},
			}, p.ask(t, a, c))
			p.check(t, "one bucket twice", verdict{
				0, ok, "ALLOWED", "none", "wide", []ratelimitv3.RateLimitResponse_Code{ok, ok}, []uint32{0, 0},
			}, p.ask(t, a, a))
		})
	}
}

// awaitServing waits until the store answers, with a bucket that no test asks for again.
func (s *service) awaitServing(t *testing.T, p *peer) {
	t.Helper()
	if v := p.ask(t, about("strict", "nobody")); v.Decision != "ALLOWED" {
		s.awaitMetric(t, 1, "ratelimit_store_lanes_connected")
	}
}

// Without the store a policy that fails closed wins over those that fail open, and costs them no emergency token; and
// of several that fail open all must admit, or none gives a token.
func TestSeveral_WithoutTheStore(t *testing.T) {
	st := newStore(t, &secrets{})
	p := newPeer(t, several, append(st.at(st.URL()), neverOpens)...)
	p.service.awaitMetric(t, 2, "ratelimit_store_lanes_connected")
	st.Kill()
	lost("dial")(t, p.service)
	a, b, c := about("wide", "acme"), about("narrow", "acme"), about("strict", "acme")
	for range 3 {
		p.check(t, "one of them fails closed", verdict{Code: codes.FailedPrecondition}, p.ask(t, a, c, b))
	}
	both := []ratelimitv3.RateLimitResponse_Code{over, ok}
	p.check(t, "the narrow one alone", admittedBy("narrow"), p.ask(t, b))
	for range 3 {
		p.check(t, "the narrow one is spent", verdict{
			0, over, emergencyLimit, "dial", "narrow", both, []uint32{0, 0},
		}, p.ask(t, b, a))
		if v := p.ask(t, a, b); v.Overall != over || v.Decision != emergencyLimit {
			t.Errorf("the narrow one is spent, and asked last: %+v", v)
		}
	}
	p.check(t, "the wide one alone", admittedBy("wide"), p.ask(t, a))
	p.check(t, "the wide one is spent", verdict{
		0, over, emergencyLimit, "dial", "wide", both[:1], []uint32{0},
	}, p.ask(t, a))
	want := counts{
		`ratelimit_emergency_tokens_total{domain="mesh",endpoint_id="wide"}`:   1,
		`ratelimit_emergency_tokens_total{domain="mesh",endpoint_id="narrow"}`: 1,
	}
	spent := p.service.metrics(t).since(counts{}, "ratelimit_emergency_tokens_total")
	if diff := cmp.Diff(want, spent); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
}

// admittedBy is the emergency limiter's consent to a request of one endpoint.
func admittedBy(endpoint string) verdict {
	return verdict{0, ok, connection, "dial", endpoint, []ratelimitv3.RateLimitResponse_Code{ok}, []uint32{0}}
}
