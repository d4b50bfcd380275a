package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// Results of the emergency limiter, as labels.
const (
	resultAdmitted = "admitted"
	resultDenied   = "denied"
)

// Emergency decorates an emergency limiter: it counts what that admits and denies.
type Emergency struct {
	next   failure.Emergency
	total  *prometheus.CounterVec
	tokens *prometheus.CounterVec
	known  map[endpointName]bool
}

var _ failure.Emergency = (*Emergency)(nil)

// NewEmergency returns the decorator of next.
func NewEmergency(reg prometheus.Registerer, next failure.Emergency) *Emergency {
	return &Emergency{
		next: next, total: emergencyTotal.counterVec(reg), tokens: emergencyTokensTotal.counterVec(reg),
	}
}

// Take has next decide, and counts the answer: for the endpoint that denied, or for all that were charged.
func (e *Emergency) Take(charges []limit.Charge) (retryAfter time.Duration, denied int, ok bool) {
	retryAfter, denied, ok = e.next.Take(charges)
	if !ok {
		at := charges[denied].Endpoint
		e.total.WithLabelValues(at.Domain, at.ID, resultDenied).Inc()
		return retryAfter, denied, false
	}
	for i := range charges {
		at := charges[i].Endpoint
		e.total.WithLabelValues(at.Domain, at.ID, resultAdmitted).Inc()
		e.tokens.WithLabelValues(at.Domain, at.ID).Add(float64(charges[i].Cost))
	}
	return 0, 0, true
}

// Configure tells which endpoints there are, at start and after every reload: those that fail open have series from
// then on, and those of endpoints that are gone disappear. It must not be called from two goroutines at once.
func (e *Emergency) Configure(endpoints []*limit.Endpoint) {
	now := make(map[endpointName]bool, len(endpoints))
	for _, at := range endpoints {
		if at.FailMode != limit.FailOpen {
			continue
		}
		now[endpointName{at.Domain, at.ID}] = true
		e.total.WithLabelValues(at.Domain, at.ID, resultAdmitted)
		e.total.WithLabelValues(at.Domain, at.ID, resultDenied)
		e.tokens.WithLabelValues(at.Domain, at.ID)
	}
	for name := range e.known {
		if !now[name] {
			gone := prometheus.Labels{"domain": name.domain, "endpoint_id": name.id}
			e.total.DeletePartialMatch(gone)
			e.tokens.DeletePartialMatch(gone)
		}
	}
	e.known = now
}
