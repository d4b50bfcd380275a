package sentinel

import "time"

// Hooks are called by the goroutines that watch Sentinels, several at once, after what they tell of took effect. They
// must not block. A nil one is not called.
type Hooks struct {
	// Event: the Sentinel at this address said something. Each Sentinel tells of the same thing.
	Event func(sentinel string, e Event)
	// Switched: Resolve names another master from now on.
	Switched func(s Switch)
	// Found: the Sentinel at this address answers, for the first time or again.
	Found func(sentinel string)
	// Lost: the Sentinel at this address does not answer any more, or never did.
	Lost func(sentinel string, err error)
	// Quorum: whether the Sentinels could fail over now changed, in the eyes of those that answer.
	Quorum func(q Quorum)
}

// Switch is a change of the master's address.
type Switch struct {
	// From and To are host:port as announced; From is empty for the first master.
	From, To string
	// Epoch is the configuration epoch of To; 0 if it is not confirmed yet.
	Epoch uint64
	// Took is the time since the Sentinels began the failover, 0 if nobody heard them begin one.
	Took time.Duration
}

// Quorum is what SENTINEL CKQUORUM says.
type Quorum struct {
	// OK: the Sentinels that are alive can agree that the master is down, and can authorize a failover.
	OK bool
	// Text is Sentinel's own explanation.
	Text string
}

func (h *Hooks) event(sentinel string, e Event) {
	if h.Event != nil {
		h.Event(sentinel, e)
	}
}

func (h *Hooks) switched(s Switch) {
	if h.Switched != nil {
		h.Switched(s)
	}
}

func (h *Hooks) found(sentinel string) {
	if h.Found != nil {
		h.Found(sentinel)
	}
}

func (h *Hooks) lost(sentinel string, err error) {
	if h.Lost != nil {
		h.Lost(sentinel, err)
	}
}

func (h *Hooks) quorum(q Quorum) {
	if h.Quorum != nil {
		h.Quorum(q)
	}
}
