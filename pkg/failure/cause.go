package failure

import "fmt"

// Cause is the finer label beneath a reason: what exactly went wrong. It is a closed set, fit for a metric label.
type Cause uint8

// The causes, grouped by the row of the decision table that they belong to.
const (
	// CauseNone: the store answered, or nothing was asked of it.
	CauseNone Cause = iota
	// CauseUnmatched: no policy governs any descriptor of the request, so that no store was asked.
	CauseUnmatched
	// CauseCostAboveMax: the request costs more than its policy's max_cost, or than the bucket can ever hold.
	CauseCostAboveMax

	// Timeout: the budget could not be met.

	// CauseDeadline: sent, but no answer within the budget.
	CauseDeadline
	// CauseQueueFull: the queue before the store was full.
	CauseQueueFull
	// CauseDropped: queued so long that sending it could not have met the deadline.
	CauseDropped
	// CauseOverload: shed at the in-flight cap.
	CauseOverload
	// CauseIOTimeout: the socket's own deadline passed.
	CauseIOTimeout

	// Connection error: the store cannot be asked, or answers with an error.

	// CauseNotConnected: no connection yet, and none has failed yet.
	CauseNotConnected
	// CauseDial: a connection could not be opened.
	CauseDial
	// CauseReset: the peer closed or reset the connection.
	CauseReset
	// CauseClosed: our own end was closed, as when the service stops.
	CauseClosed
	// CauseReadOnly: the server is a replica, or was demoted to one.
	CauseReadOnly
	// CauseLoading: the server loads its data set.
	CauseLoading
	// CauseMasterDown: a replica lost its master.
	CauseMasterDown
	// CauseClusterDown: the cluster does not serve the slot.
	CauseClusterDown
	// CauseMoved: the slot lives on another node.
	CauseMoved
	// CauseTryAgain: a multi-key call meets a slot in migration.
	CauseTryAgain
	// CauseNoReplicas: min-replicas-to-write is not met.
	CauseNoReplicas
	// CauseOOM: maxmemory is reached and nothing may be evicted.
	CauseOOM
	// CauseBusy: the server runs a script that does not end.
	CauseBusy
	// CauseMisconf: writes are stopped after a failed snapshot.
	CauseMisconf
	// CauseAuth: the credentials were refused or are missing.
	CauseAuth
	// CauseNoPerm: the ACL forbids a command or a key.
	CauseNoPerm
	// CauseMaxClients: the server has no room for another connection.
	CauseMaxClients
	// CauseProtocol: a reply that does not parse or has another shape than the script's.
	CauseProtocol
	// CauseScript: the script failed inside the server.
	CauseScript
	// CauseOther: an error reply that is none of the above.
	CauseOther

	// CauseNoScript: still missing after one re-load.
	CauseNoScript

	// Breaker open.

	// CauseBreakerOpen: the quarantine runs.
	CauseBreakerOpen
	// CauseProbing: the breaker is half open and every probe permit is taken.
	CauseProbing

	// CauseCanceled: the caller went away before the decision; nobody hears the answer.
	CauseCanceled

	causeEnd
)

var causeNames = [causeEnd]string{
	CauseNone: "none", CauseUnmatched: "unmatched", CauseCostAboveMax: "cost_above_max",
	CauseDeadline: "deadline", CauseQueueFull: "queue_full", CauseDropped: "dropped", CauseOverload: "overload",
	CauseIOTimeout: "io_timeout", CauseNotConnected: "not_connected", CauseDial: "dial", CauseReset: "reset",
	CauseClosed: "closed", CauseReadOnly: "readonly", CauseLoading: "loading", CauseMasterDown: "masterdown",
	CauseClusterDown: "clusterdown", CauseMoved: "moved", CauseTryAgain: "tryagain", CauseNoReplicas: "noreplicas",
	CauseOOM: "oom", CauseBusy: "busy", CauseMisconf: "misconf", CauseAuth: "auth", CauseNoPerm: "noperm",
	CauseMaxClients: "max_clients", CauseProtocol: "protocol", CauseScript: "script", CauseOther: "other",
	CauseNoScript: "noscript", CauseBreakerOpen: "breaker_open", CauseProbing: "probing", CauseCanceled: "canceled",
}

// Causes lists every cause, in order.
func Causes() []Cause {
	all := make([]Cause, 0, causeEnd)
	for c := range causeEnd {
		all = append(all, c)
	}
	return all
}

// String is the cause as metrics, logs and metadata carry it.
func (c Cause) String() string {
	if c < causeEnd {
		return causeNames[c]
	}
	return fmt.Sprintf("cause(%d)", uint8(c))
}

// Outcome is the row of the decision table that c belongs to.
func (c Cause) Outcome() Outcome {
	switch c {
	case CauseNone, CauseUnmatched, CauseCostAboveMax:
		return Success
	case CauseDeadline, CauseQueueFull, CauseDropped, CauseOverload, CauseIOTimeout, CauseCanceled:
		return Timeout
	case CauseNoScript:
		return NoScript
	case CauseBreakerOpen, CauseProbing:
		return BreakerOpen
	default:
		return ConnectionError
	}
}
