package journal

import (
	"fmt"
	"time"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// DeniedWithoutReason is the reason of a 503 that carries none: gRPC FAILED_PRECONDITION is FAIL_CLOSED or
// CIRCUIT_OPEN, and its status is all that the caller sees.
const DeniedWithoutReason = "FAIL_CLOSED|CIRCUIT_OPEN"

// Answer is what came back for one request.
type Answer struct {
	// Stream is its index in Journal.Streams.
	Stream int
	// Due is when the request should have been sent, Sent when it was, At when its answer was in.
	Due, Sent, At time.Duration
	// Verdict is what the answer means to the caller.
	Verdict Verdict
	// Reason is one of the eight, or whatever came instead.
	Reason string
}

// Latency counts from when the request was due, so that nothing the service held up is left out.
func (a Answer) Latency() time.Duration { return a.At - a.Due }

// Outside is whether the decision table has no such answer.
func (a Answer) Outside() bool {
	want, known := verdicts[a.Reason]
	return !known || want&(1<<a.Verdict) == 0
}

// Degraded is whether somebody else than the store decided.
func (a Answer) Degraded() bool { return !ordinary(a.Reason) }

// Verdict is what an answer means to the caller.
type Verdict uint8

// The verdicts.
const (
	// Admitted lets the request pass.
	Admitted Verdict = 1 + iota
	// Denied is over the limit, or a 503.
	Denied
	// Failed is an error, or no answer.
	Failed
)

// String names the verdict.
func (v Verdict) String() string {
	switch v {
	case Admitted:
		return "admitted"
	case Denied:
		return "denied"
	case Failed:
		return "failed"
	default:
		return fmt.Sprintf("verdict(%d)", uint8(v))
	}
}

// verdicts are those that a reason can come with, as a set: the decision table turned around.
var verdicts = map[string]uint8{
	failure.Allowed.String():              1 << Admitted,
	failure.RateLimited.String():          1 << Denied,
	failure.FailClosed.String():           1 << Denied,
	failure.CircuitOpen.String():          1<<Admitted | 1<<Denied,
	failure.RedisTimeout.String():         1 << Admitted,
	failure.RedisConnectionError.String(): 1 << Admitted,
	failure.RedisNoScriptRetry.String():   1 << Admitted,
	failure.EmergencyLocalLimit.String():  1 << Denied,
	DeniedWithoutReason:                   1 << Denied,
}
