package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// Config tunes a Store. Zero values mean the defaults.
type Config struct {
	// Addresses are host:port of nodes that are asked where the others are, at first and whenever those are gone. One
	// that answers is enough. A name may stand for several nodes.
	Addresses []string
	// Access is what it takes to be let in by every node. The account needs what redisstore.NewStandalone says, and
	// "+cluster|nodes +cluster|slots +asking". Without +cluster|slots nodes are called as they list themselves.
	Access redisstore.Access
	// NAT says where nodes are found whose own addresses are of no use here: from host:port as a node is announced to
	// the host:port to dial.
	NAT map[string]string
	// Store tunes the store of each shard. Its Redirect must be nil.
	Store redisstore.Config
	// Breaker tunes the breaker of each shard.
	Breaker failure.BreakerConfig
	// PollInterval is how often the topology is asked for while all is well. Jittered. Default 10 s.
	PollInterval time.Duration
	// ReloadSpacing is the least time between two such questions, and how often they are repeated while something is
	// wrong: a shard does not work, or a slot has no owner. Jittered. Default 100 ms; after a minute of trouble ten
	// times that.
	ReloadSpacing time.Duration
	// Timeout bounds each step of asking one node for the topology. Default 200 ms.
	Timeout time.Duration
	// RefundTimeout is how long a refund may take; after that it is given up. Default 250 ms.
	RefundTimeout time.Duration
	// MaxRefunds are under way at once; more are given up. Default 4096.
	MaxRefunds int
	// Hooks are told what happens. Default: nobody is told.
	Hooks Hooks
}

// Validate reports every setting that is out of range.
func (c Config) Validate() error {
	var errs []error
	if len(c.Addresses) == 0 {
		errs = append(errs, errors.New("cluster: no address of any node"))
	}
	for _, address := range c.Addresses {
		errs = append(errs, validAddress("address", address))
	}
	for from, to := range c.NAT {
		errs = append(errs, validAddress("NAT", from), validAddress("NAT", to))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"poll interval", c.PollInterval},
		{"reload spacing", c.ReloadSpacing},
		{"timeout", c.Timeout},
		{"refund timeout", c.RefundTimeout},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("cluster: %s is %v, must be > 0", d.name, d.value))
		}
	}
	if c.MaxRefunds < 0 {
		errs = append(errs, fmt.Errorf("cluster: max refunds is %d, must be > 0", c.MaxRefunds))
	}
	if c.Store.Redirect != nil {
		errs = append(errs, errors.New("cluster: redirections are the cluster's own business"))
	}
	return errors.Join(append(errs, c.Access.Validate(), c.Store.Validate(), c.Breaker.Validate())...)
}

func validAddress(what, address string) error {
	if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
		return fmt.Errorf("cluster: %s %q is no host:port", what, address)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Addresses = slices.Clone(c.Addresses)
	c.PollInterval = cmp.Or(c.PollInterval, 10*time.Second)
	c.ReloadSpacing = cmp.Or(c.ReloadSpacing, 100*time.Millisecond)
	c.Timeout = cmp.Or(c.Timeout, 200*time.Millisecond)
	c.RefundTimeout = cmp.Or(c.RefundTimeout, 250*time.Millisecond)
	c.MaxRefunds = cmp.Or(c.MaxRefunds, 4096)
	c.Store.MinRemaining = cmp.Or(c.Store.MinRemaining, time.Millisecond)
	c.Store.Budget = cmp.Or(c.Store.Budget, failure.DefaultBudget)
	return c
}

// translate applies the NAT map.
func (c *Config) translate(address string) string { return cmp.Or(c.NAT[address], address) }
