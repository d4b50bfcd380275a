package redisstore

import (
	"time"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// Hooks are called by the lanes, from several goroutines at once. They must not block. A nil one is not called.
type Hooks struct {
	// RoundTrip: a batch of calls came back, with CauseNone or the first failure among its replies.
	RoundTrip func(took time.Duration, calls int, cause failure.Cause)
	// Dropped: so many calls were failed without being sent, with CauseQueueFull or CauseDropped.
	Dropped func(cause failure.Cause, calls int)
	// Dialed: an attempt to open and prove a connection ended, with CauseNone if it now serves.
	Dialed func(took time.Duration, cause failure.Cause)
	// Moved: another master was found to work, and the lanes go there.
	Moved func(from, to string)
	// Reloaded: the server had lost the script; CauseNone if it has it again.
	Reloaded func(cause failure.Cause)
	// Panicked: a bug in the store, or in a hook, was recovered.
	Panicked func(value any, stack []byte)
}

func (h *Hooks) roundTrip(took time.Duration, calls int, cause failure.Cause) {
	if h.RoundTrip != nil {
		h.RoundTrip(took, calls, cause)
	}
}

func (h *Hooks) dropped(cause failure.Cause, calls int) {
	if h.Dropped != nil && calls > 0 {
		h.Dropped(cause, calls)
	}
}

func (h *Hooks) dialed(took time.Duration, cause failure.Cause) {
	if h.Dialed != nil {
		h.Dialed(took, cause)
	}
}

func (h *Hooks) moved(from, to string) {
	if h.Moved != nil {
		h.Moved(from, to)
	}
}

func (h *Hooks) reloaded(cause failure.Cause) {
	if h.Reloaded != nil {
		h.Reloaded(cause)
	}
}

func (h *Hooks) panicked(value any, stack []byte) {
	if h.Panicked != nil {
		h.Panicked(value, stack)
	}
}
