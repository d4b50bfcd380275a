package journal

import (
	"math"
)

// Emergency holds what the emergency limiter of a fail_open endpoint admitted against its bound: one bucket a process,
// which holds a second's worth of its rate and at least one request.
type Emergency struct {
	// Stream is the endpoint's id.
	Stream string `json:"stream"`
	// Admitted are the requests that passed without the store.
	Admitted int `json:"admitted_requests"`
	// Bound is capacity + rate x the time from the first degraded answer to the last.
	Bound float64 `json:"bound_requests"`
	// Seconds is that time.
	Seconds float64 `json:"degraded_seconds"`
}

// Holds is whether no more was admitted than the bound.
func (e Emergency) Holds() bool { return float64(e.Admitted) <= e.Bound }

func (j *Journal) emergencies() []Emergency {
	var list []Emergency
	for i, s := range j.Streams {
		if s.Fallback > 0 {
			list = append(list, j.emergency(i))
		}
	}
	return list
}

func (j *Journal) emergency(stream int) Emergency {
	s := j.Streams[stream]
	e := Emergency{Stream: s.Name}
	var first, last Moment
	for _, a := range j.Answers {
		if a.Stream != stream || !a.Degraded() {
			continue
		}
		// The bucket was charged some time between sending and answer: the earliest and the latest are the safe bounds.
		if !first.Happened || a.Sent < first.At {
			first = Seen(a.Sent)
		}
		last = Seen(max(last.At, a.At))
		if a.Verdict == Admitted {
			e.Admitted++
		}
	}
	e.Seconds = (last.At - first.At).Seconds()
	e.Bound = max(1, s.Fallback) + math.Ceil(s.Fallback*e.Seconds)
	return e
}
