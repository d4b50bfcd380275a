package telemetry_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/honestlimit/ratelimit/internal/telemetry"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

func decidedSeries(id, answer, cause, reason string) string {
	return `ratelimit_decisions_total{answer="` + answer + `",cause="` + cause + `",domain="mesh",endpoint_id="` + id +
		`",reason="` + reason + `"}`
}

func TestDecisions_CountsByTheGoverningEndpoint(t *testing.T) {
	charges := []limit.Charge{charge(tailor()), charge(ingest())}
	cases := []struct {
		name   string
		decide failure.Decision
		series string
	}{
		{
			"allowed",
			failure.Decision{Reason: failure.Allowed, Allowed: true},
			decidedSeries("resumint.tailor", "ok", "none", "ALLOWED"),
		},
		{
			"limited by the second",
			failure.Decision{Reason: failure.RateLimited, Governing: 1},
			decidedSeries("pdftalk.ingest", "over_limit", "none", "RATE_LIMITED"),
		},
		{
			"too dear",
			failure.Decision{Reason: failure.RateLimited, Cause: failure.CauseCostAboveMax},
			decidedSeries("resumint.tailor", "over_limit", "cost_above_max", "RATE_LIMITED"),
		},
		{
			"failed closed",
			failure.Decision{Reason: failure.FailClosed, Cause: failure.CauseDeadline, Governing: 1},
			decidedSeries("pdftalk.ingest", "unavailable", "deadline", "FAIL_CLOSED"),
		},
		{
			"admitted without the store",
			failure.Decision{Reason: failure.CircuitOpen, Cause: failure.CauseBreakerOpen, Allowed: true},
			decidedSeries("resumint.tailor", "ok", "breaker_open", "CIRCUIT_OPEN"),
		},
	}
	for _, c := range cases {
		for _, configured := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				reg := prometheus.NewRegistry()
				d := telemetry.NewDecisions(reg, deciding(c.decide))
				if configured {
					d.Configure([]*limit.Endpoint{tailor(), ingest()})
				}
				if got := d.Decide(t.Context(), charges, nil); got != c.decide {
					t.Errorf("Decide() = %+v, want %+v", got, c.decide)
				}
				want(t, reg, map[string]float64{
					c.series: 1, "ratelimit_decisions_in_flight": 0,
					`ratelimit_decision_seconds{answer="` + c.decide.Answer().String() + `"}`: 1,
				})
				total := 0.0
				for s, v := range samples(t, reg) {
					if len(s) > 25 && s[:25] == "ratelimit_decisions_total" {
						total += v
					}
				}
				if total != 1 {
					t.Errorf("%v decisions were counted, want 1", total)
				}
			})
		}
	}
}

func TestDecisions_AreNotInFlightAfterAPanic(t *testing.T) {
	reg := prometheus.NewRegistry()
	d := telemetry.NewDecisions(reg, deciding{})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		d.Decide(t.Context(), []limit.Charge{charge(tailor())}, nil)
	}()
	want(t, reg, map[string]float64{"ratelimit_decisions_in_flight": 0})
}

func TestDecisions_KnowsOnlyConfiguredNames(t *testing.T) {
	reg := prometheus.NewRegistry()
	d := telemetry.NewDecisions(reg, deciding{Reason: failure.RedisTimeout, Cause: failure.CauseDeadline, Allowed: true})
	d.Configure([]*limit.Endpoint{tailor(), ingest()})
	d.Unmatched("")
	d.Unmatched("mesh")
	d.Unmatched("mesh")
	d.Decide(t.Context(), []limit.Charge{charge(tailor())}, nil)
	allowed, timeout := decidedSeries("resumint.tailor", "ok", "none", "ALLOWED"),
		decidedSeries("resumint.tailor", "ok", "deadline", "REDIS_TIMEOUT")
	want(t, reg, map[string]float64{
		allowed: 0, timeout: 1, `ratelimit_unmatched_total{domain="other"}`: 1, `ratelimit_unmatched_total{domain="mesh"}`: 2,
	})
	d.Configure([]*limit.Endpoint{{Domain: "edge", ID: "x"}})
	want(t, reg, map[string]float64{
		allowed: -1, timeout: -1, `ratelimit_unmatched_total{domain="mesh"}`: -1,
		`ratelimit_unmatched_total{domain="other"}`: 1, `ratelimit_unmatched_total{domain="edge"}`: 0,
	})
}

func TestEmergency_CountsWhoPaidAndWhoDenied(t *testing.T) {
	other := tailor()
	other.ID = "other"
	charges := []limit.Charge{charge(tailor()), charge(other)}
	for admits, wanted := range map[metering]map[string]float64{
		true: {
			`ratelimit_emergency_total{domain="mesh",endpoint_id="resumint.tailor",result="admitted"}`: 1,
			`ratelimit_emergency_total{domain="mesh",endpoint_id="resumint.tailor",result="denied"}`:   0,
			`ratelimit_emergency_tokens_total{domain="mesh",endpoint_id="other"}`:                      2,
		},
		false: {
			`ratelimit_emergency_total{domain="mesh",endpoint_id="other",result="denied"}`:           1,
			`ratelimit_emergency_total{domain="mesh",endpoint_id="other",result="admitted"}`:         0,
			`ratelimit_emergency_total{domain="mesh",endpoint_id="resumint.tailor",result="denied"}`: 0,
			`ratelimit_emergency_tokens_total{domain="mesh",endpoint_id="resumint.tailor"}`:          0,
		},
	} {
		reg := prometheus.NewRegistry()
		e := telemetry.NewEmergency(reg, admits)
		e.Configure([]*limit.Endpoint{tailor(), other, ingest()})
		if _, _, ok := e.Take(charges); ok != bool(admits) {
			t.Errorf("Take() = %v, want %v", ok, admits)
		}
		want(t, reg, wanted)
		want(t, reg, map[string]float64{
			`ratelimit_emergency_tokens_total{domain="mesh",endpoint_id="pdftalk.ingest"}`: -1,
		})
		e.Configure([]*limit.Endpoint{tailor()})
		want(t, reg, map[string]float64{
			`ratelimit_emergency_total{domain="mesh",endpoint_id="other",result="denied"}`: -1,
			`ratelimit_emergency_tokens_total{domain="mesh",endpoint_id="other"}`:          -1,
		})
	}
}

func BenchmarkDecisions_Decide(b *testing.B) {
	d := telemetry.NewDecisions(prometheus.NewRegistry(), deciding{Reason: failure.Allowed, Allowed: true})
	d.Configure([]*limit.Endpoint{tailor()})
	charges := []limit.Charge{charge(tailor())}
	b.ReportAllocs()
	for b.Loop() {
		d.Decide(b.Context(), charges, nil)
	}
}
