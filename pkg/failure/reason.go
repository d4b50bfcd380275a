package failure

import "fmt"

// Reason is why a request was decided as it was. Exactly these eight exist (specification, "The decision table").
type Reason uint8

// The reasons.
const (
	// Allowed: the store admitted the request.
	Allowed Reason = 1 + iota
	// RateLimited: the store, or the policy's cost bound, denied it.
	RateLimited
	// FailClosed: the store gave no answer and an endpoint of the request fails closed.
	FailClosed
	// CircuitOpen: the breaker kept the request from the store.
	CircuitOpen
	// RedisTimeout: no answer within the budget; the emergency limiter admitted the request.
	RedisTimeout
	// RedisConnectionError: the store failed; the emergency limiter admitted the request.
	RedisConnectionError
	// RedisNoScriptRetry: the script stayed missing after one re-load; the emergency limiter admitted the request.
	RedisNoScriptRetry
	// EmergencyLocalLimit: the store gave no answer and the emergency limiter denied the request.
	EmergencyLocalLimit
)

// Reasons lists every reason, in order.
var Reasons = [...]Reason{
	Allowed, RateLimited, FailClosed, CircuitOpen, RedisTimeout, RedisConnectionError, RedisNoScriptRetry,
	EmergencyLocalLimit,
}

// String is the reason as metrics, logs and metadata carry it.
func (r Reason) String() string {
	switch r {
	case Allowed:
		return "ALLOWED"
	case RateLimited:
		return "RATE_LIMITED"
	case FailClosed:
		return "FAIL_CLOSED"
	case CircuitOpen:
		return "CIRCUIT_OPEN"
	case RedisTimeout:
		return "REDIS_TIMEOUT"
	case RedisConnectionError:
		return "REDIS_CONNECTION_ERROR"
	case RedisNoScriptRetry:
		return "REDIS_NOSCRIPT_RETRY"
	case EmergencyLocalLimit:
		return "EMERGENCY_LOCAL_LIMIT"
	default:
		return fmt.Sprintf("REASON(%d)", uint8(r))
	}
}
