package limit

import "fmt"

// FailMode says what becomes of an endpoint's requests while the store cannot decide.
type FailMode uint8

// The fail modes.
const (
	// FailOpen admits what the emergency limiter of the endpoint admits.
	FailOpen FailMode = 1 + iota
	// FailClosed denies with a 503.
	FailClosed
)

// String names the mode as a policy file does.
func (m FailMode) String() string {
	switch m {
	case FailOpen:
		return "fail_open"
	case FailClosed:
		return "fail_closed"
	default:
		return fmt.Sprintf("fail_mode(%d)", uint8(m))
	}
}

// Endpoint is what a decision needs to know about the endpoint whose policy made a charge.
type Endpoint struct {
	// Domain and ID name the endpoint; both come from configuration, never from a request.
	Domain, ID string
	// FailMode is the product decision for the time the store is away.
	FailMode FailMode
	// Fallback is the rate that one process admits while the store is away; zero unless FailMode is FailOpen.
	Fallback Rate
}

// Charge asks one bucket for a cost. The charges of one request have distinct keys.
type Charge struct {
	// Key names the bucket. It holds hashes and configured names only, no identity.
	Key string
	// Limit is what the bucket is held to.
	Limit Limit
	// Cost is in tokens; 0 asks whether one more would fit, without charging. A negative cost gives back what was
	// charged: a store makes such charges, a request never does.
	Cost int64
	// At is when a negative cost was charged, in microseconds since the epoch by the store's clock; else 0.
	At int64
	// Endpoint is the endpoint whose policy makes this charge.
	Endpoint *Endpoint
}
