package load

import "time"

// Observation is one request and what came back for it, told while the run goes on.
type Observation struct {
	// Due is when the request should have been sent, Sent when it was, Answered when it ended. They carry the monotonic
	// clock, so that their differences are exact.
	Due, Sent, Answered time.Time
	// Answer and Reason are those that an Answer of the report counts it under.
	Answer, Reason string
}

// observation turns an outcome into what the observer is told.
func (r *runner) observation(o outcome) Observation {
	return Observation{
		Due: r.started.Add(o.due), Sent: r.started.Add(o.sent), Answered: r.started.Add(o.answered),
		Answer: o.verdict.String(), Reason: string(o.reason),
	}
}
