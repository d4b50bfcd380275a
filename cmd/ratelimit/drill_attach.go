package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill"
	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/drill/page"
	"github.com/honestlimit/ratelimit/internal/redisstore"
)

// drillAttach are the flags of the half that only looks.
type drillAttach struct {
	Attach bool `group:"Attach" env:"-" help:"Break nothing and start nothing: look at the deployment that --redis names."`
	redisFlags
	Service  string        `group:"Attach" env:"-" placeholder:"ADDR" help:"gRPC address of the service to offer load to; needs --domain and --ask. Without it only the topology is looked at."`
	Admin    string        `group:"Attach" env:"-" placeholder:"ADDR" help:"Its admin address, to see which master it has, its breaker and its decisions in flight."`
	Domain   string        `group:"Attach" env:"-" placeholder:"NAME" help:"Domain to ask about."`
	Ask      []string      `group:"Attach" env:"-" placeholder:"KEY=VALUE" help:"An entry of the descriptor to ask for; repeat it for more. Name one that the store would always admit, and that nobody else needs."`
	Duration time.Duration `group:"Attach" env:"-" placeholder:"TIME" help:"How long to look (until Ctrl-C)."`
	Inject   string        `group:"Attach" env:"-" placeholder:"COMMAND" help:"Shell command that breaks something, run after --before. It should end: T0 is when it begins."`
}

// unusedWithoutAttach complains about flags that mean nothing to a drill of its own topology.
func (c *drillCmd) unusedWithoutAttach() error {
	var faults []error
	for _, f := range []struct {
		flag  string
		given bool
	}{
		{"--redis", c.Redis != os.Getenv("RATELIMIT_REDIS")}, // that of the service is no wish of this command's user
		{"--service", c.Service != ""},
		{"--admin", c.Admin != ""},
		{"--domain", c.Domain != ""},
		{"--ask", len(c.Ask) > 0},
		{"--duration", c.Duration != 0},
		{"--inject", c.Inject != ""},
	} {
		if f.given {
			faults = append(faults, fmt.Errorf("%s: is about a deployment of yours, and needs --attach", f.flag))
		}
	}
	return errors.Join(faults...)
}

// attach looks at somebody's own deployment.
func (c *drillCmd) attach(ctx context.Context, s *streams) error {
	cfg, err := c.attachConfig(s.err)
	if err != nil {
		return &usageError{command: "drill", err: err}
	}
	report, err := drill.Attach(ctx, cfg)
	if report == nil {
		return err
	}
	reports := []*journal.Report{report}
	return errors.Join(err, page.Text(c.terminal(s), report), c.write(s, reports), failed(reports))
}

func (c *drillCmd) attachConfig(progress io.Writer) (drill.AttachConfig, error) {
	var faults []error
	if c.Category != "" || c.Variant != "" || c.Every {
		faults = append(faults, errors.New("--attach: breaks nothing, and so takes no CATEGORY and no variant; --inject "+
			"runs a fault of your own"))
	}
	if !strings.HasPrefix(c.Redis, "sentinel://") {
		faults = append(faults, errors.New("--redis: must name the Sentinels to listen to: sentinel://s1,s2,s3/mymaster"))
	}
	if c.Service != "" && (c.Domain == "" || len(c.Ask) == 0) {
		faults = append(faults, errors.New("--service: needs --domain and --ask, to know what to ask"))
	}
	if c.Service == "" && (c.Domain != "" || len(c.Ask) > 0) {
		faults = append(faults, errors.New("--domain, --ask: need --service, to know whom to ask"))
	}
	asked, err := descriptors(c.Ask)
	faults = append(faults, err, c.validate())
	if err := errors.Join(faults...); err != nil {
		return drill.AttachConfig{}, err
	}
	cfg := drill.AttachConfig{
		Service: c.Service, Admin: c.Admin, Domain: c.Domain, Descriptors: asked, Rate: float64(c.Rate),
		Budget: c.Budget, Margin: c.Margin, Before: c.Before, Duration: c.Duration,
		OnProgress: func(line string) { fmt.Fprintln(progress, "  "+line) },
	}
	if c.Inject != "" {
		cfg.Inject = func(ctx context.Context) error { return shell(ctx, "--inject", c.Inject) }
		c.warn(progress)
	}
	return cfg, c.reach(&cfg)
}

// warn says so where the fault is one that hides what matters.
func (c *drillCmd) warn(progress io.Writer) {
	if drill.SkipsDetection(c.Inject) {
		fmt.Fprintln(progress, "warning: SENTINEL FAILOVER skips the detection, the vote and the lost connections: it "+
			"exercises the switch alone, and must not be the only proof")
	}
}

// reach adds how to be let in by the Sentinels and the data nodes.
func (c *drillCmd) reach(cfg *drill.AttachConfig) error {
	seeds, err := redisstore.ParseSeeds(c.Redis)
	if err != nil {
		return fmt.Errorf("--redis: %w", err)
	}
	data, dataErr := c.access()
	own, ownErr := c.sentinelAccess()
	nat, natErr := c.nat()
	cfg.Master, cfg.Addresses = seeds.Master, seeds.Addresses
	cfg.Data, cfg.Sentinels, cfg.NAT = seeds.Admit(data), own, nat
	return errors.Join(dataErr, ownErr, natErr)
}
