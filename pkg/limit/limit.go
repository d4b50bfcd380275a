// Package limit decides one bucket: it holds the nouns of rate limiting (Limit, Charge, Endpoint, Result) and the
// two algorithms, token bucket and sliding window counter, as pure functions of (state, now, cost).
//
// It knows no clock, no store, no wire format and no configuration file. Every function here is free of side effects
// and safe for concurrent use. All arithmetic is on integers: scripts/limit.lua computes the same numbers bit for bit
// inside Redis, which is why magnitudes stay below 2^52, the range that a Lua number represents exactly.
package limit

import (
	"errors"
	"fmt"
	"time"
)

// Micro is the number of microtokens in one token.
const Micro = 1_000_000

// Bounds of what a Limit may say. They keep every product of the algorithms inside exact integer range.
const (
	// MaxTokens is the largest capacity, and so the largest cost, in tokens.
	MaxTokens = 1_000_000_000
	// MaxPeriod is the longest window or refill period, in microseconds (366 days).
	MaxPeriod = 366 * 24 * 3600 * Micro
	// MaxRate is the fastest refill, in tokens per second.
	MaxRate = 1_000_000
)

// Forever is where every duration saturates, about 142 years; no caller waits longer for a different answer.
const Forever = time.Duration(forever) * time.Microsecond

// Never is the RetryAfter of a cost that no amount of waiting makes fit, because it exceeds the capacity.
const Never time.Duration = -1

// Algorithm says how a bucket counts.
type Algorithm uint8

// The algorithms. Their numbers are part of the stored state and of the script's arguments: never renumber them.
const (
	TokenBucket Algorithm = 1 + iota
	SlidingWindow
)

// String names the algorithm as a policy file does.
func (a Algorithm) String() string {
	switch a {
	case TokenBucket:
		return "token_bucket"
	case SlidingWindow:
		return "sliding_window"
	default:
		return fmt.Sprintf("algorithm(%d)", uint8(a))
	}
}

// Limit is what one policy enforces on each of its buckets. The zero value is invalid.
type Limit struct {
	Algorithm Algorithm
	// Capacity is the most a bucket admits at once: microtokens for a token bucket (1 token to 1e9 tokens), whole
	// tokens per window for a sliding window (1 to 1e9).
	Capacity int64
	// Refill is the number of microtokens that a token bucket regains per Period; a sliding window has none.
	Refill int64
	// Period is the time in microseconds that Refill takes, or the length of the window.
	Period int64
}

// NewTokenBucket returns the token bucket that holds capacity microtokens and regains rate.
func NewTokenBucket(capacity int64, rate Rate) Limit {
	r := rate.Reduced()
	return Limit{Algorithm: TokenBucket, Capacity: capacity, Refill: r.Micro, Period: r.Period}
}

// NewSlidingWindow returns the sliding window counter that admits tokens per window; fractions of a microsecond in
// window are dropped.
func NewSlidingWindow(tokens int64, window time.Duration) Limit {
	return Limit{Algorithm: SlidingWindow, Capacity: tokens, Period: window.Microseconds()}
}

// Validate reports every bound that l breaks.
func (l Limit) Validate() error {
	switch l.Algorithm {
	case TokenBucket:
		return errors.Join(
			within("capacity", l.Capacity, Micro, MaxTokens*Micro, "microtokens"),
			Rate{Micro: l.Refill, Period: l.Period}.Validate(),
		)
	case SlidingWindow:
		return errors.Join(
			within("limit", l.Capacity, 1, MaxTokens, "tokens"),
			within("window", l.Period, 1, MaxPeriod, "microseconds"),
		)
	default:
		return fmt.Errorf("limit: unknown %v", l.Algorithm)
	}
}

// Tokens is the capacity in whole tokens: the largest cost that can ever be admitted.
func (l Limit) Tokens() int64 {
	if l.Algorithm == TokenBucket {
		return l.Capacity / Micro
	}
	return l.Capacity
}

// Window is the time in which an unused bucket regains its whole capacity: the window of a sliding window, the time
// that an empty token bucket takes to fill. It saturates at Forever.
func (l Limit) Window() time.Duration {
	if l.Algorithm == TokenBucket {
		return micros(l.untilLevel(State{}, l.Capacity))
	}
	return micros(l.Period)
}

func within(what string, v, low, high int64, unit string) error {
	if v < low || v > high {
		return fmt.Errorf("limit: %s is %d, must be from %d to %d %s", what, v, low, high, unit)
	}
	return nil
}
