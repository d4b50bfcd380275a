package telemetry_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// samples is a registry's content: series, written name{label="value",...} with labels in order, to value. Of a
// histogram it has the count.
func samples(tb testing.TB, reg prometheus.Gatherer) map[string]float64 {
	tb.Helper()
	families, err := reg.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			out[series(f.GetName(), m)] = value(m)
		}
	}
	return out
}

func series(name string, m *dto.Metric) string {
	var labels []string
	for _, l := range m.GetLabel() {
		labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
	}
	if len(labels) == 0 {
		return name
	}
	return name + "{" + strings.Join(labels, ",") + "}"
}

func value(m *dto.Metric) float64 {
	switch {
	case m.GetCounter() != nil:
		return m.GetCounter().GetValue()
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue()
	default:
		return float64(m.GetHistogram().GetSampleCount())
	}
}

// want compares some series; one that is wanted to be -1 must not exist.
func want(tb testing.TB, reg prometheus.Gatherer, wanted map[string]float64) {
	tb.Helper()
	have := samples(tb, reg)
	for s, w := range wanted {
		got, ok := have[s]
		if w == -1 && ok {
			tb.Errorf("%s = %v, want none", s, got)
		}
		if w != -1 && (!ok || got != w) {
			tb.Errorf("%s = %v (exists: %v), want %v", s, got, ok, w)
		}
	}
}

// deciding is a decider that always decides the same, or panics if that is not a decision.
type deciding failure.Decision

func (d deciding) Decide(context.Context, []limit.Charge, []limit.Result) failure.Decision {
	if d.Reason == 0 {
		panic("a bug")
	}
	return failure.Decision(d)
}

// metering is an emergency limiter that admits or denies everything.
type metering bool

func (m metering) Take([]limit.Charge) (time.Duration, int, bool) { return 0, 1, bool(m) }

func tailor() *limit.Endpoint {
	return &limit.Endpoint{
		Domain: "mesh", ID: "resumint.tailor", FailMode: limit.FailOpen,
		Fallback: limit.Rate{Micro: 5 * limit.Micro, Period: limit.Micro},
	}
}

func ingest() *limit.Endpoint {
	return &limit.Endpoint{Domain: "mesh", ID: "pdftalk.ingest", FailMode: limit.FailClosed}
}

func charge(e *limit.Endpoint) limit.Charge {
	return limit.Charge{Key: "rl:v1:{c0moEZm_bUv1}:" + e.ID + ":1", Cost: 2, Endpoint: e}
}
