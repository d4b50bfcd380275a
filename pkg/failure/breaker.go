package failure

import (
	"sync"
	"sync/atomic"
	"time"
)

// Breaker keeps requests from a store that has stopped working, and finds out when it works again.
//
//	          Failures in a row: error replies, broken or
//	          late round trips, stretches of silence
//	+--------+ ---------------------------------> +------+
//	| Closed |                                    | Open | <--+
//	+--------+                                    +------+    |
//	    ^                   quarantine over, or      |        | any failure
//	    |        the store, or another one, is proved v        |
//	    |      a decision succeeds             +----------+   |
//	    +------------------------------------- | HalfOpen | --+
//	                                           +----------+
//
// It counts evidence about the store, not requests: one round trip is one success or one failure, whatever number of
// requests it carried. Silence, an answer owed and none arriving on any connection, is one failure at the budget and
// one more each SilenceInterval. A late answer whose lateness was already counted as silence is not counted twice.
//
// Every transition starts a new generation. What is heard of trips and probes of an older one is ignored.
//
// Asking for the state never changes it. Silence and the end of the quarantine are noticed by Run, which must be
// running. Time is the local monotonic clock. Source of the two-step permits and generations: the design of
// sony/gobreaker; of silence as evidence: docs/decisions/0002.
type Breaker struct {
	cfg  BreakerConfig
	wake chan struct{}

	// word is generation<<2 | state: all that a request of a closed or open breaker touches.
	word atomic.Uint64

	mu          sync.Mutex
	since       time.Time
	failures    int
	lastCause   Cause
	lastFailure time.Time
	opened      uint64
	openUntil   time.Time
	earliest    time.Time     // no proof ends the quarantine before
	spacing     time.Duration // the early end of the newest quarantine, before jitter
	probes      []time.Time   // when each permit of HalfOpen expires; zero: free

	watch watch
}

// wellFor is how many times as long as it was left alone a store must have been well, not to be called flapping.
const wellFor = 4

// Permit allows one request to ask the store.
type Permit struct {
	generation uint64
	probe      int // 1 + index into Breaker.probes; 0: no probe
}

// NewBreaker returns a closed breaker.
func NewBreaker(cfg BreakerConfig) (*Breaker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	b := &Breaker{cfg: cfg.withDefaults(), wake: make(chan struct{}, 1), since: time.Now()}
	b.probes = make([]time.Time, b.cfg.Probes)
	b.word.Store(uint64(Closed))
	return b, nil
}

// State returns the current state. It never blocks.
func (b *Breaker) State() State { return State(b.word.Load() & 3) }

// Admit asks for a permit. It is one atomic load unless the breaker is half open.
func (b *Breaker) Admit() (Permit, Cause) {
	word := b.word.Load()
	switch State(word & 3) {
	case Closed:
		return Permit{generation: word >> 2}, CauseNone
	case Open:
		return Permit{}, CauseBreakerOpen
	default:
		return b.admitProbe(time.Now())
	}
}

func (b *Breaker) admitProbe(now time.Time) (Permit, Cause) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.State() {
	case Closed:
		return Permit{generation: b.generation()}, CauseNone
	case Open:
		return Permit{}, CauseBreakerOpen
	case HalfOpen:
		for i, expires := range b.probes {
			if !now.Before(expires) {
				b.probes[i] = now.Add(b.cfg.ProbeTTL)
				return Permit{generation: b.generation(), probe: i + 1}, CauseNone
			}
		}
	}
	return Permit{}, CauseProbing
}

// Settle tells how a request with a permit ended. Only probes count here, since everything else is known from its
// round trip. A probe that never reached the store, or whose caller went away, gives its permit back.
func (b *Breaker) Settle(p Permit, c Cause) {
	if p.probe == 0 {
		return
	}
	b.observe(func(now time.Time) *Transition {
		if p.generation != b.generation() {
			return nil
		}
		switch c {
		case CauseNone:
			return b.succeed(now)
		case CauseCanceled, CauseQueueFull, CauseDropped, CauseOverload:
			b.probes[p.probe-1] = time.Time{}
			return nil
		default:
			return b.fail(now, c)
		}
	})
}

// Answered tells that a round trip of decisions ended: with CauseNone if every reply was genuine, else with the worst
// cause among them.
func (b *Breaker) Answered(t Trip, c Cause) {
	b.observe(func(now time.Time) *Transition {
		switch {
		case !b.heard(t, now):
			return nil
		case c != CauseNone:
			return b.fail(now, c)
		case now.Sub(t.sent) <= b.cfg.Budget:
			return b.succeed(now)
		default:
			return b.late(t, now)
		}
	})
}

// Alive tells that a round trip ended that decided nothing, such as a ping: it breaks the silence, but a store that
// answers pings may still fail every decision, so it is no success.
func (b *Breaker) Alive(t Trip) {
	b.observe(func(now time.Time) *Transition {
		if !b.heard(t, now) || now.Sub(t.sent) <= b.cfg.Budget {
			return nil
		}
		return b.late(t, now)
	})
}

// Failed tells of a failure outside any round trip, such as a connection that could not be opened.
func (b *Breaker) Failed(c Cause) {
	b.observe(func(now time.Time) *Transition { return b.fail(now, c) })
}

// Proved tells that a connection has shown the store to work, off the request path. An open breaker becomes half
// open, never closed, unless it opened too recently.
func (b *Breaker) Proved() {
	b.observe(func(now time.Time) *Transition {
		if b.State() != Open || b.cfg.NoEarlyEnd || now.Before(b.earliest) {
			return nil
		}
		return b.move(now, HalfOpen, TriggerProof)
	})
}

// Moved tells that another server has become the store, and has been shown to work. What was found out about the old
// one counts no more, least of all how often it failed: an open breaker becomes half open at once, never closed.
func (b *Breaker) Moved() {
	b.observe(func(now time.Time) *Transition {
		b.spacing = b.cfg.EarlyEnd / 2 // the next quarantine, if it is a flap, doubles it
		if b.State() != Open {
			b.renew(b.State())
			return nil
		}
		if b.cfg.NoEarlyEnd {
			return nil
		}
		return b.move(now, HalfOpen, TriggerMoved)
	})
}

// Snapshot returns the breaker as it stands.
func (b *Breaker) Snapshot() Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Snapshot{
		State: b.State(), Since: b.since, Failures: b.failures, LastCause: b.lastCause,
		LastFailure: b.lastFailure, OpenUntil: b.openUntil, Opened: b.opened,
	}
}

// observe runs one event under the lock and tells of the transition it made.
func (b *Breaker) observe(event func(now time.Time) *Transition) {
	b.mu.Lock()
	moved := event(time.Now())
	b.mu.Unlock()
	if moved != nil {
		b.cfg.OnTransition(*moved)
	}
}

func (b *Breaker) succeed(now time.Time) *Transition {
	b.failures = 0
	if b.State() != HalfOpen {
		return nil
	}
	return b.move(now, Closed, TriggerSuccess)
}

func (b *Breaker) fail(now time.Time, c Cause) *Transition {
	if b.State() == Open {
		return nil
	}
	b.failures++
	b.lastCause, b.lastFailure = c, now
	switch {
	case b.State() == HalfOpen:
		return b.move(now, Open, TriggerProbeFailed)
	case b.failures >= b.cfg.Failures:
		return b.move(now, Open, TriggerFailures)
	default:
		return nil
	}
}

// move makes a transition and starts a new generation.
func (b *Breaker) move(now time.Time, to State, why Trigger) *Transition {
	t := &Transition{From: b.State(), To: to, Trigger: why}
	if to == Open {
		b.quarantine(now, t)
	} else {
		b.openUntil = time.Time{}
	}
	b.since = now
	b.renew(to)
	return t
}

// renew starts a new generation, which owes nothing.
func (b *Breaker) renew(s State) {
	clear(b.probes)
	b.failures, b.watch.owed = 0, 0
	b.word.Store((b.generation()+1)<<2 | uint64(s))
	b.alert()
}

// quarantine sets how long the breaker stays open.
func (b *Breaker) quarantine(now time.Time, t *Transition) {
	b.spacing = b.nextSpacing(now)
	b.opened++
	keep := 1 - b.cfg.Jitter*b.cfg.Rand()
	t.Cause = b.lastCause
	t.Quarantine = time.Duration(float64(b.cfg.Quarantine) * keep)
	t.EarliestProof = time.Duration(float64(b.spacing) * keep)
	b.openUntil, b.earliest = now.Add(t.Quarantine), now.Add(t.EarliestProof)
}

// nextSpacing is how long the store is left alone at least. A store that flaps, which is to fail its probe or soon
// after it was well again, is left alone for longer each time; one that was well for longer is trusted sooner again. So
// a store that only hiccups is away for a fifth of the time at most.
func (b *Breaker) nextSpacing(now time.Time) time.Duration {
	shortest := min(b.cfg.EarlyEnd, b.cfg.Quarantine)
	well := now.Sub(b.since)
	switch {
	case b.State() != HalfOpen && (b.opened == 0 || well >= b.cfg.Quarantine):
		return shortest
	case b.State() == HalfOpen, well < wellFor*b.spacing:
		return min(2*b.spacing, b.cfg.Quarantine)
	default:
		return max(b.spacing/2, shortest)
	}
}

func (b *Breaker) generation() uint64 { return b.word.Load() >> 2 }
