package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// Decider decides a request (rls.Decider).
//
// Decide must always return a decision, and must keep neither slice after it returned.
type Decider interface {
	Decide(ctx context.Context, charges []limit.Charge, results []limit.Result) failure.Decision
}

// OtherDomain is the label of requests for domains that are not configured.
const OtherDomain = "other"

type endpointName struct{ domain, id string }

// usual holds the counters of one endpoint's two everyday decisions, so that counting those looks up no labels.
type usual struct {
	allowed, limited prometheus.Counter
}

// of returns the counter for a reason, nil if it is no everyday one or the endpoint is not configured.
func (u usual) of(r failure.Reason) prometheus.Counter {
	switch r {
	case failure.Allowed:
		return u.allowed
	case failure.RateLimited:
		return u.limited
	default:
		return nil
	}
}

// Decisions decorates a Decider: it counts and times what that decides.
type Decisions struct {
	next      Decider
	total     *prometheus.CounterVec
	latency   [failure.Unavailable + 1]prometheus.Observer // by answer
	inFlight  prometheus.Gauge
	unmatched *prometheus.CounterVec
	usual     atomic.Pointer[map[endpointName]usual]
}

// NewDecisions returns the decorator of next.
func NewDecisions(reg prometheus.Registerer, next Decider) *Decisions {
	d := &Decisions{
		next:      next,
		total:     decisionsTotal.counterVec(reg),
		inFlight:  decisionsInFlight.gauge(reg),
		unmatched: unmatchedTotal.counterVec(reg),
	}
	latency := decisionSeconds.histogramVec(reg)
	for _, a := range [...]failure.Answer{failure.OK, failure.OverLimit, failure.Unavailable} {
		d.latency[a] = latency.WithLabelValues(a.String())
	}
	d.usual.Store(&map[endpointName]usual{})
	return d
}

// Decide has next decide, and counts it.
func (d *Decisions) Decide(
	ctx context.Context, charges []limit.Charge, results []limit.Result,
) failure.Decision {
	d.inFlight.Inc()
	defer d.inFlight.Dec() // also if next panics
	start := time.Now()
	decided := d.next.Decide(ctx, charges, results)
	d.latency[decided.Answer()].Observe(seconds(time.Since(start)))
	d.Count(charges, decided)
	return decided
}

// Count counts a decision that was made without the Decider (rls.Config.OnTooDear).
func (d *Decisions) Count(charges []limit.Charge, decided failure.Decision) {
	e := charges[decided.Governing].Endpoint
	if decided.Cause == failure.CauseNone {
		u := (*d.usual.Load())[endpointName{e.Domain, e.ID}]
		if counter := u.of(decided.Reason); counter != nil {
			counter.Inc()
			return
		}
	}
	d.counter(e, decided).Inc()
}

// Unmatched counts a request that no policy governs; domain is empty if it is not configured
// (rls.Config.OnUnmatched).
func (d *Decisions) Unmatched(domain string) {
	if domain == "" {
		domain = OtherDomain
	}
	d.unmatched.WithLabelValues(domain).Inc()
}

// Configure tells which endpoints there are, at start and after every reload: their series exist from then on, and
// those of endpoints that are gone disappear. It must not be called from two goroutines at once.
func (d *Decisions) Configure(endpoints []*limit.Endpoint) {
	now := make(map[endpointName]usual, len(endpoints))
	domains := map[string]bool{OtherDomain: true}
	for _, e := range endpoints {
		now[endpointName{e.Domain, e.ID}] = usual{
			allowed: d.counter(e, failure.Decision{Reason: failure.Allowed, Allowed: true}),
			limited: d.counter(e, failure.Decision{Reason: failure.RateLimited}),
		}
		domains[e.Domain] = true
	}
	for domain := range domains {
		d.unmatched.WithLabelValues(domain)
	}
	old := *d.usual.Swap(&now)
	for name := range old {
		if _, still := now[name]; !still {
			d.total.DeletePartialMatch(prometheus.Labels{"domain": name.domain, "endpoint_id": name.id})
		}
		if !domains[name.domain] {
			d.unmatched.DeleteLabelValues(name.domain)
		}
	}
}

func (d *Decisions) counter(e *limit.Endpoint, decided failure.Decision) prometheus.Counter {
	return d.total.WithLabelValues(
		e.Domain, e.ID, decided.Reason.String(), decided.Cause.String(), decided.Answer().String())
}
