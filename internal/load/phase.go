package load

import "time"

// Phase is what came back in a part of the run. A request is in the fault if any moment of its life was.
type Phase struct {
	// Name is before, during or after, the fault; all for the whole run.
	Name string `json:"name"`
	// Seconds is how long the phase lasted.
	Seconds float64 `json:"seconds"`
	// Requests is the number of requests that ended, RequestsPerSecond the same for each second of the phase.
	Requests          int64   `json:"requests"`
	RequestsPerSecond float64 `json:"requests_per_second"`
	// Admitted, OverLimit, Errors and Unanswered add up to Requests.
	Admitted   int64 `json:"admitted_requests"`
	OverLimit  int64 `json:"over_limit_requests"`
	Errors     int64 `json:"error_requests"`
	Unanswered int64 `json:"unanswered_requests"`
	// Degraded is the number of those admitted and over limit that the service answered without its store.
	Degraded int64 `json:"degraded_requests"`
	// Answers tells them apart, the most frequent first.
	Answers []Answer `json:"answers"`
	Latency Latency  `json:"latency"`
}

func newPhase(name string, t *tally, length time.Duration) Phase {
	p := Phase{
		Name:       name,
		Seconds:    seconds(length),
		Admitted:   t.count(admitted),
		OverLimit:  t.count(overLimit),
		Errors:     t.count(failed),
		Unanswered: t.count(unanswered),
		Degraded:   t.degraded,
		Answers:    t.list(),
		Latency:    newLatency(t.latency, t.worst),
	}
	p.Requests = p.Admitted + p.OverLimit + p.Errors + p.Unanswered
	p.RequestsPerSecond = ratio(float64(p.Requests), p.Seconds)
	return p
}
