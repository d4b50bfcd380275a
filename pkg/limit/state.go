package limit

import (
	"math/bits"
	"time"
)

// State is what a store keeps of one bucket. The zero value is a bucket that nobody has charged: full.
type State struct {
	// At is in microseconds since the Unix epoch: when Level was true for a token bucket, the start of the current
	// window for a sliding window. 0 means that there is no state.
	At int64
	// Level is the microtokens left in a token bucket, or the tokens counted in the current window.
	Level int64
	// Rest is the part of a microtoken already regained, in units of 1/Period, or the tokens counted in the
	// window before the current one.
	Rest int64
}

// Result is what one bucket says about one charge.
type Result struct {
	// Allowed tells whether this bucket admits the cost. A request is admitted only if every bucket of it does.
	Allowed bool
	// Remaining is the number of whole tokens left after this decision.
	Remaining int64
	// RetryAfter is how long this cost must wait if nobody else charges the bucket: 0 when Allowed, exact when not,
	// Never when the cost exceeds the capacity.
	RetryAfter time.Duration
	// ResetAfter is the time until the bucket is full again, and so the lifetime its state needs in a store.
	ResetAfter time.Duration
}

// forever is the saturation value of every computed number of microseconds (see Forever).
const forever = 1 << 52

// Advance returns s as it stands at now (microseconds since the epoch) under l. A clock that stepped back keeps what
// the bucket holds and counts from now; one that jumped forward fills it at most.
func (l Limit) Advance(s State, now int64) State {
	if l.Algorithm == TokenBucket {
		return l.advanceTokens(s, now)
	}
	return l.advanceWindow(s, now)
}

// Wait returns the microseconds until cost fits into s, which Advance brought to now: 0 when it fits, -1 for never.
// A cost of 0 asks for 1.
func (l Limit) Wait(s State, now, cost int64) int64 {
	cost = max(cost, 1)
	if cost > l.Tokens() {
		return -1
	}
	if l.Algorithm == TokenBucket {
		return l.untilLevel(s, cost*Micro)
	}
	return l.waitWindow(s, now, cost)
}

// Spend charges cost to s, for which Wait returned 0.
func (l Limit) Spend(s State, cost int64) State {
	if l.Algorithm == TokenBucket {
		s.Level -= cost * Micro
	} else {
		s.Level += cost
	}
	return s
}

// Remaining returns the whole tokens that s, brought to now, still admits.
func (l Limit) Remaining(s State, now int64) int64 {
	if l.Algorithm == TokenBucket {
		return s.Level / Micro
	}
	return max(0, l.Capacity-s.Level-l.weight(s, now))
}

// Reset returns the microseconds until s, brought to now, is full again.
func (l Limit) Reset(s State, now int64) int64 {
	if l.Algorithm == TokenBucket {
		return l.untilLevel(s, l.Capacity)
	}
	switch elapsed := now - s.At; {
	case s.Level > 0:
		return 2*l.Period - elapsed
	case s.Rest > 0:
		return l.Period - elapsed
	default:
		return 0
	}
}

// Take decides one charge on one bucket: the state to keep, which differs from s brought to now only when the cost
// was admitted and is not 0, and the result.
func (l Limit) Take(s State, now, cost int64) (State, Result) {
	s = l.Advance(s, now)
	wait := l.Wait(s, now, cost)
	if wait == 0 {
		s = l.Spend(s, cost)
	}
	return s, l.Report(s, now, wait)
}

// Report puts the result of a charge together from the bucket's final state and what Wait returned for it.
func (l Limit) Report(s State, now, wait int64) Result {
	r := Result{Allowed: wait == 0, Remaining: l.Remaining(s, now), ResetAfter: micros(l.Reset(s, now))}
	if r.RetryAfter = micros(wait); wait < 0 {
		r.RetryAfter = Never
	}
	return r
}

// mulDiv returns the quotient and remainder of (a*b+c)/d for operands below 2^52, through a 128-bit product. A
// quotient of 2^52 or more saturates to 2^52 with remainder 0.
func mulDiv(a, b, c, d int64) (quotient, remainder int64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	lo, carry := bits.Add64(lo, uint64(c), 0)
	hi += carry
	if hi >= uint64(d) {
		return forever, 0
	}
	q, r := bits.Div64(hi, lo, uint64(d))
	if q >= forever {
		return forever, 0
	}
	return int64(q), int64(r)
}

func micros(n int64) time.Duration {
	return time.Duration(min(n, forever)) * time.Microsecond
}
