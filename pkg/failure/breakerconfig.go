package failure

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// BreakerConfig tunes a Breaker. Zero values mean the defaults.
type BreakerConfig struct {
	// Failures in a row open the breaker. Default 5 (specification).
	Failures int
	// Quarantine is how long it stays open at most. Default 30 s (specification).
	Quarantine time.Duration
	// Budget is the longest round trip that counts as a success, and the silence that counts as the first failure.
	// Default 20 ms (specification).
	Budget time.Duration
	// SilenceInterval is the further silence that counts as one more failure. Default 25 ms: with five failures
	// a stall of 100 ms is survived and total silence opens the breaker after 120 ms.
	SilenceInterval time.Duration
	// EarlyEnd is the time after opening before which no proof ends the quarantine. It doubles each time that a store
	// fails its probe, or after less than four times as long as it was left alone, and halves each time that it was well
	// for longer. Default 500 ms.
	EarlyEnd time.Duration
	// NoEarlyEnd makes every quarantine run to its end.
	NoEarlyEnd bool
	// Probes is the number of requests that a half-open breaker lets through at once. Default 1.
	Probes int
	// ProbeTTL is when a probe that was never heard of again gives its permit back. Default 250 ms.
	ProbeTTL time.Duration
	// Jitter is the largest part of a quarantine, early or full, that is taken off at random so that a fleet does
	// not probe in step. Default 0.2; negative means none.
	Jitter float64
	// OnTransition is called after each move, outside any lock. It must not block. Default: nobody is told.
	OnTransition func(Transition)
	// Rand gives numbers in [0,1) for the jitter. Default math/rand/v2.
	Rand func() float64
}

// Validate reports every setting that is out of range.
func (c BreakerConfig) Validate() error {
	var errs []error
	if c.Failures < 0 || c.Probes < 0 {
		errs = append(errs, errors.New("failure: breaker failures and probes must be > 0"))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"quarantine", c.Quarantine},
		{"budget", c.Budget},
		{"silence interval", c.SilenceInterval},
		{"early end", c.EarlyEnd},
		{"probe TTL", c.ProbeTTL},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("failure: breaker %s is %v, must be > 0", d.name, d.value))
		}
	}
	if c.Jitter >= 1 {
		errs = append(errs, fmt.Errorf("failure: breaker jitter is %v, must be < 1", c.Jitter))
	}
	return errors.Join(errs...)
}

func (c BreakerConfig) withDefaults() BreakerConfig {
	c.Failures = cmp.Or(c.Failures, 5)
	c.Quarantine = cmp.Or(c.Quarantine, 30*time.Second)
	c.Budget = cmp.Or(c.Budget, DefaultBudget)
	c.SilenceInterval = cmp.Or(c.SilenceInterval, 25*time.Millisecond)
	c.EarlyEnd = cmp.Or(c.EarlyEnd, 500*time.Millisecond)
	c.Probes = cmp.Or(c.Probes, 1)
	c.ProbeTTL = cmp.Or(c.ProbeTTL, 250*time.Millisecond)
	c.Jitter = max(0, cmp.Or(c.Jitter, 0.2))
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	if c.OnTransition == nil {
		c.OnTransition = func(Transition) {}
	}
	return c
}
