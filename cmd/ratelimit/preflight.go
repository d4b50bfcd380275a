package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/honestlimit/ratelimit/internal/preflight"
	"github.com/honestlimit/ratelimit/internal/redisstore"
)

// adminPasswordVariable holds the password of --admin-username.
const adminPasswordVariable = "RATELIMIT_ADMIN_PASSWORD"

// preflightCmd examines a Redis set-up.
type preflightCmd struct {
	redisFlags

	AdminUsername     string `group:"Administration" placeholder:"NAME" help:"ACL user that may ask what the service's own may not: INFO, CONFIG GET, ACL DRYRUN, SENTINEL FLUSHCONFIG. The same on data nodes and Sentinels."`
	AdminPasswordFile string `group:"Administration" placeholder:"FILE" help:"File that holds its password. Or set ${adminPassword}."`

	Budget    time.Duration `default:"20ms" placeholder:"TIME" help:"The --budget of the service (${default})."`
	Decisions float64       `env:"-" placeholder:"N" help:"Decisions a second that are expected at the peak; without it what is written now counts."`
	Outage    time.Duration `env:"-" default:"1m" placeholder:"TIME" help:"How long a replica may be away and still catch up (${default})."`
	Timeout   time.Duration `env:"-" default:"1s" placeholder:"TIME" help:"How long one server is waited for, at each step (${default})."`
	Calls     int           `env:"-" default:"500" placeholder:"N" help:"Calls of the script that are measured, shared by all masters (${default})."`
	Strict    bool          `env:"-" help:"Exit with 1 for warnings, too."`
	JSON      bool          `env:"-" name:"json" help:"Print the report as JSON."`
}

// Help implements kong.HelpProvider.
func (preflightCmd) Help() string {
	return `Examines every server before a launch: who takes over if the master dies and how soon, who can be lost, what
the service's account may do, clocks, certificates, memory, and how long a decision takes. Prints pass, warn, fail or
skip for each check, with the reason and the remedy; docs/preflight.md lists the checks.

Exit code 0 if nothing failed, 1 if something did, 2 if it is not clear what to examine. It changes nothing, but for
SENTINEL FLUSHCONFIG, SCRIPT LOAD, and a bucket rl:preflight:... that expires within a second.

  ratelimit preflight --redis sentinel://s1,s2,s3/mymaster --redis-username ratelimit --redis-password-file redis.pw \
      --sentinel-username ratelimit --sentinel-password-file sentinel.pw \
      --admin-username operator --admin-password-file operator.pw --decisions 20000`
}

// Run prints the report. It fails if the report does.
func (c *preflightCmd) Run(s *streams) error {
	cfg, err := c.config()
	if err != nil {
		return &usageError{command: "preflight", err: err}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := preflight.Run(ctx, cfg)
	if err != nil {
		return err
	}
	if err := c.print(s.out, report); err != nil {
		return err
	}
	return c.judge(report)
}

func (c *preflightCmd) config() (preflight.Config, error) {
	if c.Redis == "" {
		return preflight.Config{}, errors.New("--redis: say what to examine")
	}
	if err := c.validate(); err != nil {
		return preflight.Config{}, err
	}
	data, dataErr := c.access()
	sentinels, sentinelsErr := c.sentinelAccess()
	admin, adminErr := c.admin()
	nat, natErr := c.nat()
	return preflight.Config{
		URL: c.Redis, Data: data, Sentinels: sentinels, Admin: admin, NAT: nat,
		Budget: c.Budget, Decisions: c.Decisions, Outage: c.Outage, Timeout: c.Timeout, Calls: c.Calls,
	}, errors.Join(dataErr, sentinelsErr, adminErr, natErr, c.validateNumbers())
}

func (c *preflightCmd) validateNumbers() (err error) {
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"--budget", c.Budget}, {"--outage", c.Outage}, {"--timeout", c.Timeout}} {
		if d.value <= 0 {
			err = errors.Join(err, fmt.Errorf("%s: is %v, must be more than 0", d.flag, d.value))
		}
	}
	if c.Calls <= 0 {
		err = errors.Join(err, errors.New("--calls: must be more than 0"))
	}
	if c.Decisions < 0 {
		err = errors.Join(err, errors.New("--decisions: must not be less than 0"))
	}
	return err
}

func (c *preflightCmd) admin() (redisstore.Access, error) {
	password := os.Getenv(adminPasswordVariable)
	if password != "" && c.AdminPasswordFile != "" {
		return redisstore.Access{}, errors.New("--admin-password-file and " + adminPasswordVariable + " are both given")
	}
	return redisstore.Access{
		Username: c.AdminUsername, Password: redisstore.Secret(password), PasswordFile: c.AdminPasswordFile,
	}, nil
}

func (c *preflightCmd) print(out io.Writer, r preflight.Report) error {
	if !c.JSON {
		return r.WriteText(out)
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// judge is an error if the set-up is not fit to launch.
func (c *preflightCmd) judge(r preflight.Report) error {
	switch {
	case r.Count(preflight.Fail) > 0:
		return fmt.Errorf("%d of %d findings failed", r.Count(preflight.Fail), len(r.Results))
	case c.Strict && r.Count(preflight.Warn) > 0:
		return fmt.Errorf("%d of %d findings are warnings, and --strict takes none",
			r.Count(preflight.Warn), len(r.Results))
	default:
		return nil
	}
}
