package drill

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

// leastRate is the load below which a tenth of a second says nothing, most what one machine can bear beside Redis.
const (
	leastRate = 20
	mostRate  = 50_000
)

// Config says what to drill. Category and Program are required; zero means the default everywhere else.
type Config struct {
	// Category is the kind of fault.
	Category journal.Category
	// Variant is one of Variants(Category); the default is the first.
	Variant string
	// Program is the ratelimit binary that `serve` is started from, ProgramEnv what is added to its environment.
	Program    string
	ProgramEnv []string
	// Server is redis-server; the default is that on PATH.
	Server string

	// Rate is the number of requests offered each second; the default is 500.
	Rate float64
	// Budget is the service's time for a decision; the default is 20 ms, as that of the service.
	Budget time.Duration
	// Margin is how much later than the budget an answer may be, beyond what the machine cost the drill itself; the
	// default is 50 ms.
	Margin time.Duration
	// DownAfter is Sentinel's patience, or a Cluster's node timeout; the default is 2 s. It should be well above 1 s: a
	// Sentinel tries to reconnect once a second, and one that takes its first second with a new master for silence calls
	// for another failover.
	DownAfter time.Duration
	// FailoverTimeout is Sentinel's: an election that found no winner is held again after twice that; the default is 3 s.
	FailoverTimeout time.Duration
	// Before is how long the load runs before anything is broken; the default is 3 s.
	Before time.Duration
	// Outage is how long things stay broken after the topology has answered the fault; the default is 3 s.
	Outage time.Duration
	// After is how long the load runs on once all is well; the default is 1500 ms.
	After time.Duration
	// Hurry makes the Sentinels look at their nodes every second and not every ten, so that a master that comes back is
	// told within 3 s and not 10 s that it is a replica now. It shortens a run, and T6.
	Hurry bool

	// DecideWithin bounds T5 after +switch-master; the default is 150 ms.
	DecideWithin time.Duration
	// SettleWithin bounds T6 after the fault was mended; the default is 30 s.
	SettleWithin time.Duration

	// Evidence is the folder in which a failed run leaves a folder of its own; the default is the working directory.
	Evidence string
	// Keep leaves it after every run.
	Keep bool
	// OnProgress is called with a line for whoever watches. It must not block. Default: nothing is called.
	OnProgress func(string)
}

// WithDefaults fills in what is zero; Run does it, too.
func (c Config) WithDefaults() Config {
	c.Rate = cmp.Or(c.Rate, 500)
	c.Budget = cmp.Or(c.Budget, 20*time.Millisecond)
	c.Margin = cmp.Or(c.Margin, 50*time.Millisecond)
	c.DownAfter = cmp.Or(c.DownAfter, 2*time.Second)
	c.FailoverTimeout = cmp.Or(c.FailoverTimeout, 3*time.Second)
	c.Before = cmp.Or(c.Before, 3*time.Second)
	c.Outage = cmp.Or(c.Outage, 3*time.Second)
	c.After = cmp.Or(c.After, 1500*time.Millisecond)
	c.DecideWithin = cmp.Or(c.DecideWithin, 150*time.Millisecond)
	c.SettleWithin = cmp.Or(c.SettleWithin, 30*time.Second)
	c.Evidence = cmp.Or(c.Evidence, ".")
	if c.OnProgress == nil {
		c.OnProgress = func(string) {}
	}
	return c
}

// Validate returns all faults at once.
func (c Config) Validate() error {
	_, err := find(c.Category, c.Variant)
	return errors.Join(err, c.validateFigures())
}

// validateFigures is all of it but for category and variant.
func (c Config) validateFigures() error {
	var errs []error
	if c.Program == "" {
		errs = append(errs, errors.New("drill: the program of the service is missing"))
	}
	if c.Rate < leastRate || c.Rate > mostRate {
		errs = append(errs, fmt.Errorf("drill: the rate must be from %d to %d a second", leastRate, mostRate))
	}
	for _, d := range []struct {
		name         string
		value, least time.Duration
	}{
		{"budget", c.Budget, time.Millisecond},
		{"margin", c.Margin, 0},
		{"down-after", c.DownAfter, 100 * time.Millisecond},
		{"failover timeout", c.FailoverTimeout, 100 * time.Millisecond},
		{"time before the fault", c.Before, time.Second},
		{"time of the outage", c.Outage, 100 * time.Millisecond},
		{"time after it", c.After, 100 * time.Millisecond},
		{"bound of the first decision", c.DecideWithin, time.Millisecond},
		{"bound of the topology's health", c.SettleWithin, time.Second},
	} {
		if d.value < d.least {
			errs = append(errs, fmt.Errorf("drill: the %s must be at least %v", d.name, d.least))
		}
	}
	return errors.Join(errs...)
}

// promoteWithin is how long a failover may take: the first Sentinel's patience, an election that finds no winner, the
// wait for the next one, and the promotion.
func (c Config) promoteWithin() time.Duration {
	return c.DownAfter + 3*c.FailoverTimeout + 2*time.Second
}
