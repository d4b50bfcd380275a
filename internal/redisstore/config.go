package redisstore

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// Config tunes a Store. Zero values mean the defaults.
type Config struct {
	// Lanes is the number of connections. Default 2; more than 4 only cost Redis system calls.
	Lanes int
	// QueueSize is how many calls wait for a lane at most. Default 4096.
	QueueSize int
	// MaxBatch is how many calls share one round trip at most. Default 128.
	MaxBatch int
	// MinRemaining is the time a call must have left to be sent at all. Default 1 ms.
	MinRemaining time.Duration
	// SocketTimeout bounds every round trip. It only finds dead connections, so it is far longer than the budget of
	// any call. Default 250 ms.
	SocketTimeout time.Duration
	// DialTimeout bounds opening a connection, TLS included. Default 250 ms.
	DialTimeout time.Duration
	// BackoffMin and BackoffMax bound the pause before an address that failed is dialed again; it doubles with every
	// failure and is jittered. Defaults 50 ms and 1 s.
	BackoffMin, BackoffMax time.Duration
	// CheckInterval is how often each connection is asked whether it is alive and leads to a master. Jittered.
	// Default 1 s.
	CheckInterval time.Duration
	// ProofInterval is how often a connection proves the store while the breaker is open. Jittered. Default 250 ms.
	ProofInterval time.Duration
	// Budget is the longest round trip that proves a store to work. Default failure.DefaultBudget.
	Budget time.Duration
	// NoDenyCache has the store asked about buckets that have just denied, too.
	NoDenyCache bool
	// ProofKey returns the bucket that a proof charges, among those that the account may write. A Cluster's node can only
	// prove to write one of its own. Default: always "rl:proof".
	ProofKey func() string
	// Redirect takes over a call that the server did not execute because it is a Cluster's node and sends the call
	// elsewhere: Redirect must complete it, or have it completed, and must not block. If it is set, only calls of the same
	// Route.Slot share a command. Default: the server is no Cluster's node.
	Redirect func(c *failure.Call, to Redirection)
	// Hooks are told what the store does. Default: nobody is told.
	Hooks Hooks
}

// Validate reports every setting that is out of range.
func (c Config) Validate() error {
	var errs []error
	for _, n := range []struct {
		name  string
		value int
	}{{"lanes", c.Lanes}, {"queue size", c.QueueSize}, {"max batch", c.MaxBatch}} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("redisstore: %s is %d, must be > 0", n.name, n.value))
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"min remaining", c.MinRemaining},
		{"socket timeout", c.SocketTimeout},
		{"dial timeout", c.DialTimeout},
		{"min back-off", c.BackoffMin},
		{"max back-off", c.BackoffMax},
		{"check interval", c.CheckInterval},
		{"proof interval", c.ProofInterval},
		{"budget", c.Budget},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("redisstore: %s is %v, must be > 0", d.name, d.value))
		}
	}
	if d := c.withDefaults(); d.BackoffMin > d.BackoffMax {
		errs = append(errs, fmt.Errorf("redisstore: back-off from %v to %v is reversed", d.BackoffMin, d.BackoffMax))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	c.Lanes = cmp.Or(c.Lanes, 2)
	c.QueueSize = cmp.Or(c.QueueSize, 4096)
	c.MaxBatch = cmp.Or(c.MaxBatch, 128)
	c.MinRemaining = cmp.Or(c.MinRemaining, time.Millisecond)
	c.SocketTimeout = cmp.Or(c.SocketTimeout, 250*time.Millisecond)
	c.DialTimeout = cmp.Or(c.DialTimeout, 250*time.Millisecond)
	c.BackoffMin = cmp.Or(c.BackoffMin, 50*time.Millisecond)
	c.BackoffMax = cmp.Or(c.BackoffMax, time.Second)
	c.CheckInterval = cmp.Or(c.CheckInterval, time.Second)
	c.ProofInterval = cmp.Or(c.ProofInterval, 250*time.Millisecond)
	c.Budget = cmp.Or(c.Budget, failure.DefaultBudget)
	if c.ProofKey == nil {
		c.ProofKey = func() string { return proofKey }
	}
	return c
}

// sha1Hex is the name under which Redis keeps a script.
func sha1Hex(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}
