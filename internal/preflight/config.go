package preflight

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// Config says what to examine, and what to hold it against. URL is required.
type Config struct {
	// URL is where Redis is, in any of the forms that redisstore.ParseURL and redisstore.ParseSeeds read.
	URL string
	// Data is how the service is let in by data nodes, Sentinels how by Sentinels.
	Data, Sentinels redisstore.Access
	// Admin is an account for what the service's own may not ask; only Username, Password and PasswordFile count.
	// Sentinels are asked to let it in as well. Default: the service's own accounts are used for everything.
	Admin redisstore.Access
	// NAT maps announced addresses to those that are dialed.
	NAT map[string]string
	// Budget is the most that the store may hold up one request. Default failure.DefaultBudget.
	Budget time.Duration
	// Decisions is the expected peak of decisions a second, for the size of the replication backlog. Default: what
	// is written now.
	Decisions float64
	// Outage is how long a replica may be away and still catch up from the backlog. Default 60 s.
	Outage time.Duration
	// Timeout bounds every step of asking one server. Default 1 s.
	Timeout time.Duration
	// Total bounds the whole run. Default 10 s.
	Total time.Duration
	// Watch is how long the replication stream is watched for what is written. Default 1 s.
	Watch time.Duration
	// Calls is how many calls of the script are measured, shared by all masters, but 100 each at the least. Default 500.
	Calls int
	// Pace is the time from one of them to the next. Default 4 ms.
	Pace time.Duration
}

// Validate reports every fault, but for those of URL and Data, which make sense only together.
func (c Config) Validate() error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"budget", c.Budget},
		{"outage", c.Outage},
		{"timeout", c.Timeout},
		{"total", c.Total},
		{"watch", c.Watch},
		{"pace", c.Pace},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("preflight: %s is %v, must be > 0", d.name, d.value))
		}
	}
	if c.Decisions < 0 || c.Calls < 0 {
		errs = append(errs, errors.New("preflight: decisions and calls must be > 0"))
	}
	return errors.Join(append(errs, c.Sentinels.Validate(), c.Admin.Validate())...)
}

func (c Config) withDefaults() Config {
	if c.hasAdmin() { // or a name in URL would take its place
		c.Admin.Username = cmp.Or(c.Admin.Username, "default")
	}
	c.Budget = cmp.Or(c.Budget, failure.DefaultBudget)
	c.Outage = cmp.Or(c.Outage, time.Minute)
	c.Timeout = cmp.Or(c.Timeout, time.Second)
	c.Total = cmp.Or(c.Total, 10*time.Second)
	c.Watch = cmp.Or(c.Watch, time.Second)
	c.Calls = cmp.Or(c.Calls, 500)
	c.Pace = cmp.Or(c.Pace, 4*time.Millisecond)
	return c
}

func (c Config) hasAdmin() bool {
	return cmp.Or(c.Admin.Username, string(c.Admin.Password), c.Admin.PasswordFile) != ""
}
