package failure

import (
	"fmt"
	"time"
)

// Answer is what the caller is told: the three ways a decision can look from outside.
type Answer uint8

// The answers.
const (
	// OK lets the request pass.
	OK Answer = 1 + iota
	// OverLimit is a 429.
	OverLimit
	// Unavailable is a 503.
	Unavailable
)

// String names the answer as metrics do.
func (a Answer) String() string {
	switch a {
	case OK:
		return "ok"
	case OverLimit:
		return "over_limit"
	case Unavailable:
		return "unavailable"
	default:
		return fmt.Sprintf("answer(%d)", uint8(a))
	}
}

// Decision is how a request was decided. The store's numbers are in the results that Decide filled; they are valid
// only if Degraded is false.
type Decision struct {
	// Reason is one of the eight.
	Reason Reason
	// Cause says what went wrong, CauseNone if nothing did.
	Cause Cause
	// Allowed tells whether the request may pass.
	Allowed bool
	// RetryAfter is how long the caller should wait before it asks again: exact from the store, an estimate from the
	// emergency limiter, 0 if there is nothing to promise.
	RetryAfter time.Duration
	// Governing is the index of the charge that decided: the denying one, the first that fails closed, or the one with
	// the least remaining.
	Governing int
}

// Degraded tells whether the store did not make this decision, so that there are no numbers to report.
func (d Decision) Degraded() bool {
	return d.Cause.Outcome() != Success
}

// Answer maps the reason to what the caller is told (specification, "HTTP mapping").
func (d Decision) Answer() Answer {
	switch {
	case d.Allowed:
		return OK
	case d.Reason == RateLimited || d.Reason == EmergencyLocalLimit:
		return OverLimit
	default:
		return Unavailable
	}
}
