package failure

import (
	"fmt"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

// Outcome is what the store made of a request: a row of the decision table.
type Outcome uint8

// The outcomes.
const (
	Success Outcome = 1 + iota
	Timeout
	ConnectionError
	NoScript
	BreakerOpen
)

// String names the outcome as the specification's table does.
func (o Outcome) String() string {
	switch o {
	case Success:
		return "success"
	case Timeout:
		return "timeout (budget spent)"
	case ConnectionError:
		return "connection error"
	case NoScript:
		return "NOSCRIPT, re-load exhausted"
	case BreakerOpen:
		return "breaker OPEN"
	default:
		return fmt.Sprintf("outcome(%d)", uint8(o))
	}
}

// Row is one row of the decision table: the reason of a request under either fail mode.
type Row struct {
	Outcome Outcome
	// Open is the reason of a fail_open request that the emergency limiter admitted; one it denied is
	// EmergencyLocalLimit in every row.
	Open Reason
	// Closed is the reason of a fail_closed request, which is denied.
	Closed Reason
}

// Table is the decision table of the specification, for every outcome but Success, whose two reasons are the store's
// own: Allowed and RateLimited.
var Table = [...]Row{
	{Timeout, RedisTimeout, FailClosed},
	{ConnectionError, RedisConnectionError, FailClosed},
	{NoScript, RedisNoScriptRetry, FailClosed},
	{BreakerOpen, CircuitOpen, CircuitOpen},
}

// reason looks an outcome up under mode; an outcome without a row, which is a bug, is treated as a connection error.
func reason(o Outcome, mode limit.FailMode) Reason {
	row := Table[1]
	for _, r := range Table {
		if r.Outcome == o {
			row = r
		}
	}
	if mode == limit.FailOpen {
		return row.Open
	}
	return row.Closed
}
