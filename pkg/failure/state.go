package failure

import (
	"fmt"
	"time"
)

// State is the state of a breaker.
type State uint8

// The states.
const (
	// Closed lets every request through to the store.
	Closed State = 1 + iota
	// Open keeps every request from the store.
	Open
	// HalfOpen lets a few probes through.
	HalfOpen
)

// String names the state as metrics and logs do.
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half_open"
	default:
		return fmt.Sprintf("state(%d)", uint8(s))
	}
}

// Trigger is the event that moved a breaker.
type Trigger uint8

// The triggers.
const (
	// TriggerFailures: as many failures in a row as the breaker tolerates.
	TriggerFailures Trigger = 1 + iota
	// TriggerQuarantineOver: the quarantine ran to its end.
	TriggerQuarantineOver
	// TriggerProof: a connection proved the store off the request path, which ended the quarantine early.
	TriggerProof
	// TriggerMoved: another server became the store, and was shown to work.
	TriggerMoved
	// TriggerProbeFailed: a half-open breaker saw a failure.
	TriggerProbeFailed
	// TriggerSuccess: a half-open breaker saw a decision succeed.
	TriggerSuccess
)

// String names the trigger as logs do.
func (t Trigger) String() string {
	switch t {
	case TriggerFailures:
		return "failures"
	case TriggerQuarantineOver:
		return "quarantine_over"
	case TriggerProof:
		return "proof"
	case TriggerMoved:
		return "moved"
	case TriggerProbeFailed:
		return "probe_failed"
	case TriggerSuccess:
		return "success"
	default:
		return fmt.Sprintf("trigger(%d)", uint8(t))
	}
}

// Transition is one move of a breaker.
type Transition struct {
	From, To State
	Trigger  Trigger
	// Cause is that of the last failure, CauseNone if the move is not for the worse.
	Cause Cause
	// Quarantine is how long the breaker stays open at most, and EarliestProof how soon a proof may end that; both 0
	// unless To is Open.
	Quarantine, EarliestProof time.Duration
}

// Snapshot is a breaker as it stands, for people to read.
type Snapshot struct {
	State State
	// Since is when that state began.
	Since time.Time
	// Failures is the number of consecutive failures; a closed breaker opens at BreakerConfig.Failures.
	Failures int
	// LastCause is that of the newest failure, CauseNone if there was none.
	LastCause Cause
	// LastFailure is when that was.
	LastFailure time.Time
	// OpenUntil is when the quarantine ends; zero unless State is Open.
	OpenUntil time.Time
	// Opened counts how often the breaker opened.
	Opened uint64
}
