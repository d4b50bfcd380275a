package failure

import (
	"sync/atomic"
	"time"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

// Store decides all charges of a call atomically: all buckets are charged or none.
//
// Submit must not block: it must never wait on a socket, a full queue or a lock that is held across I/O. It must
// complete the call exactly once, by Finish or Fail, from any goroutine and as late as it likes, even before it
// returns. It must not touch the call after that.
type Store interface {
	Submit(c *Call)
}

// Call is one request on its way through a store. The Guard that made it may give up on it at any time; the store
// does not notice, and completes it as if somebody still listened.
type Call struct {
	// Charges are what the store must decide, with distinct keys. Read-only.
	Charges []limit.Charge
	// Results has one entry for each charge. The store fills it before Finish.
	Results []limit.Result
	// Deadline is when the caller stops waiting. A store may fail a call that cannot meet it.
	Deadline time.Time
	// At is when the store decided, in microseconds since the epoch by the store's own clock. A store that dates its
	// decisions fills it before Finish.
	At int64
	// Route belongs to the store.
	Route Route

	cause    Cause
	panicked any
	state    atomic.Uint32
	done     chan struct{} // of capacity 1
	timer    *time.Timer   // the guard's
	release  func(*Call)
	notify   func(*Call) // who hears of the completion in place of done; nil: nobody
}

// Route is what a store of several parts notes about a call on its way through them.
type Route struct {
	// Slot is where all charges of the call belong; what is in different slots cannot be decided together.
	Slot uint16
	// Hops counts how often a part sent the call on to another.
	Hops uint8
	// Alone tells that the call must not share a command with others, Asking that the part it goes to is only about to
	// take the slot over, Dry that its charges must be decided and not made.
	Alone, Asking, Dry bool
}

const (
	callPending uint32 = iota
	callCompleted
	callAbandoned
)

// NewCall returns a call outside any Guard, for stores under test. Done reports its completion.
func NewCall(charges []limit.Charge, deadline time.Time) *Call {
	return &Call{
		Charges: charges, Results: make([]limit.Result, len(charges)), Deadline: deadline,
		done: make(chan struct{}, 1),
	}
}

// NewPart returns a call that a store makes for itself, as a part of another. It calls done when it completes, on the
// goroutine that completes it: done must not block.
func NewPart(charges []limit.Charge, deadline time.Time, done func(*Call)) *Call {
	return &Call{Charges: charges, Results: make([]limit.Result, len(charges)), Deadline: deadline, notify: done}
}

// Finish completes the call: Results say what was decided.
func (c *Call) Finish() { c.complete(CauseNone) }

// Fail completes the call without a decision. The cause must not be CauseNone.
func (c *Call) Fail(cause Cause) { c.complete(cause) }

// Panic completes the call with a bug: the caller's goroutine panics with value.
func (c *Call) Panic(value any) {
	c.panicked = value
	c.complete(CauseOther)
}

// Bug is what Panic was called with, nil if it was not. Valid once the call is complete.
func (c *Call) Bug() any { return c.panicked }

// Done is signalled once, when the call completes.
func (c *Call) Done() <-chan struct{} { return c.done }

// Cause is what the call failed of, CauseNone if it was finished. Valid once it is complete.
func (c *Call) Cause() Cause { return c.cause }

func (c *Call) complete(cause Cause) {
	c.cause = cause
	if c.notify != nil {
		c.notify(c)
		return
	}
	if c.state.CompareAndSwap(callPending, callCompleted) {
		c.done <- struct{}{}
		return
	}
	c.release(c) // nobody listens any more
}

// abandon gives the call up to the store; false if it completed meanwhile.
func (c *Call) abandon() bool {
	return c.state.CompareAndSwap(callPending, callAbandoned)
}
