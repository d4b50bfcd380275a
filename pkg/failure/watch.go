package failure

import (
	"context"
	"time"
)

// Trip is one round trip to the store, as the breaker knows it.
type Trip struct {
	sent       time.Time
	generation uint64
	silences   uint64
}

// watch is what a breaker keeps to notice silence. It is guarded by the breaker's lock.
type watch struct {
	owed     int       // round trips of this generation without an answer
	quiet    time.Time // since when no answer has come although one is owed
	counted  time.Time // when that silence was last counted; zero: not yet
	silences uint64    // failures counted for silence, ever
	armed    time.Time // when Run looks next; zero: when it is woken
	active   bool      // a trip began since Run looked
}

// Sent tells that a round trip begins, so that an answer is owed.
func (b *Breaker) Sent() Trip {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watch.owed == 0 {
		b.watch.quiet, b.watch.counted = now, time.Time{}
		if b.watch.armed.IsZero() {
			b.alert()
		}
	}
	b.watch.owed++
	b.watch.active = true
	return Trip{sent: now, generation: b.generation(), silences: b.watch.silences}
}

// Run notices silence and the end of quarantines until ctx ends.
func (b *Breaker) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if next, ok := b.tick(); ok {
			timer.Reset(next)
		} else {
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-b.wake:
		case <-ctx.Done():
			return
		}
	}
}

// tick does what is due and returns the time until it must look again; false if only Sent or a transition can make
// anything due.
func (b *Breaker) tick() (next time.Duration, ok bool) {
	b.observe(func(now time.Time) *Transition {
		if b.State() == Open {
			if now.Before(b.openUntil) {
				return nil
			}
			return b.move(now, HalfOpen, TriggerQuarantineOver)
		}
		if b.watch.owed == 0 || now.Before(b.silenceDue()) {
			return nil
		}
		// One failure a look, however late the look is: a process that was itself stalled has heard no silence.
		b.watch.counted = now
		b.watch.silences++
		return b.fail(now, CauseDeadline)
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	switch {
	case b.State() == Open:
		b.watch.armed = b.openUntil
	case b.watch.owed > 0:
		b.watch.armed = b.silenceDue()
	case b.watch.active:
		// Under load the next trip is not far: looking once more is cheaper than being woken for each.
		b.watch.armed = now.Add(b.cfg.Budget)
	default:
		b.watch.armed = time.Time{}
	}
	b.watch.active = false
	return b.watch.armed.Sub(now), !b.watch.armed.IsZero()
}

// heard books the answer to t; false if t is of an older generation.
func (b *Breaker) heard(t Trip, now time.Time) bool {
	if t.generation != b.generation() || t.sent.IsZero() {
		return false
	}
	b.watch.owed--
	b.watch.quiet, b.watch.counted = now, time.Time{}
	return true
}

// late counts a genuine answer that outlived the budget, unless the silence before it was counted.
func (b *Breaker) late(t Trip, now time.Time) *Transition {
	if b.watch.silences != t.silences {
		return nil
	}
	return b.fail(now, CauseDeadline)
}

func (b *Breaker) silenceDue() time.Time {
	if b.watch.counted.IsZero() {
		return b.watch.quiet.Add(b.cfg.Budget)
	}
	return b.watch.counted.Add(b.cfg.SilenceInterval)
}

// alert makes Run look.
func (b *Breaker) alert() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
