package sentinel

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
)

// Config says which Sentinels to ask about which master. Master and Addresses are required.
type Config struct {
	// Master is the name by which the Sentinels know the master.
	Master string
	// Addresses are host:port of the Sentinels to begin with; the others are learnt from them. These are never forgotten.
	Addresses []string
	// Data is how the master and the replicas let us in.
	Data redisstore.Access
	// Sentinels is how the Sentinels let us in. They have accounts of their own.
	Sentinels redisstore.Access
	// NAT maps announced addresses, of data nodes and Sentinels alike, to those that reach them. TLS still verifies the
	// announced host.
	NAT map[string]string
	// DB is the number of the database on the master. Default 0.
	DB int

	// PollInterval is how often each Sentinel is asked, and how long a silent subscription is trusted. Jittered.
	// Default 1 s.
	PollInterval time.Duration
	// AlertInterval takes the place of PollInterval while the master is in doubt. Jittered. Default 100 ms.
	AlertInterval time.Duration
	// QuorumInterval is how often each Sentinel is asked whether a failover could happen. Default 5 s.
	QuorumInterval time.Duration
	// Timeout bounds every step with a Sentinel: connecting, logging in, a question. Default 200 ms.
	Timeout time.Duration
	// BackoffMin and BackoffMax bound the pause before a Sentinel that failed is tried again. The pause doubles with every
	// failure in a row, and is jittered. Defaults 100 ms and 2 s.
	BackoffMin, BackoffMax time.Duration
	// ForgetAfter is how long a learnt Sentinel that nobody names any more must be unreachable to be forgotten.
	// Default 1 min.
	ForgetAfter time.Duration
	// MaxSentinels is how many are watched at the most. Default 32.
	MaxSentinels int

	// Hooks are told what happens. Default: nobody is told.
	Hooks Hooks
}

// Validate reports every setting that is missing or out of range.
func (c Config) Validate() error {
	errs := []error{c.Data.Validate(), c.Sentinels.Validate()}
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("sentinel: "+format, args...)) }
	if c.Master == "" || !isWord(c.Master) {
		fault("master's name is %q, must be one word", c.Master)
	}
	if len(c.Addresses) == 0 {
		fault("addresses: at least one Sentinel is needed")
	}
	for _, address := range c.Addresses {
		if !isAddress(address) {
			fault("address %q is not host:port", address)
		}
	}
	for announced, dialed := range c.NAT {
		if !isAddress(announced) || !isAddress(dialed) {
			fault("NAT from %q to %q is not from host:port to host:port", announced, dialed)
		}
	}
	if c.DB < 0 {
		fault("database is %d, must be >= 0", c.DB)
	}
	d := c.withDefaults()
	if d.MaxSentinels < len(c.Addresses) {
		fault("max Sentinels is %d, but %d are given", d.MaxSentinels, len(c.Addresses))
	}
	if d.BackoffMin > d.BackoffMax {
		fault("back-off from %v to %v is reversed", d.BackoffMin, d.BackoffMax)
	}
	return errors.Join(append(errs, c.validateTimes())...)
}

func (c Config) validateTimes() error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"poll interval", c.PollInterval},
		{"alert interval", c.AlertInterval},
		{"quorum interval", c.QuorumInterval},
		{"timeout", c.Timeout},
		{"min back-off", c.BackoffMin},
		{"max back-off", c.BackoffMax},
		{"forget after", c.ForgetAfter},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("sentinel: %s is %v, must be > 0", d.name, d.value))
		}
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	c.PollInterval = cmp.Or(c.PollInterval, time.Second)
	c.AlertInterval = cmp.Or(c.AlertInterval, 100*time.Millisecond)
	c.QuorumInterval = cmp.Or(c.QuorumInterval, 5*time.Second)
	c.Timeout = cmp.Or(c.Timeout, 200*time.Millisecond)
	c.BackoffMin = cmp.Or(c.BackoffMin, 100*time.Millisecond)
	c.BackoffMax = cmp.Or(c.BackoffMax, 2*time.Second)
	c.ForgetAfter = cmp.Or(c.ForgetAfter, time.Minute)
	c.MaxSentinels = cmp.Or(c.MaxSentinels, 32)
	return c
}

// dialed is where an announced address is really reached.
func (c *Config) dialed(announced string) string { return cmp.Or(c.NAT[announced], announced) }

// maxHost is the longest host name that DNS allows, in bytes.
const maxHost = 255

// isAddress tells whether s is host:port with a port that can be dialed.
func isAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" || len(host) > maxHost || !isWord(host) {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// isWord tells whether s is printable ASCII without spaces: nothing that could break a line or a list of words.
func isWord(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
}
