package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill"
	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/drill/page"
)

// drillCmd breaks a topology on purpose and says what came of it.
type drillCmd struct {
	Category string `arg:"" optional:"" name:"category" help:"What to break: master-exit, master-crash, partition, replica-lag, sentinel-loss, cluster, or all, one after the other. None with --attach."`

	Variant         string        `env:"-" placeholder:"NAME" help:"How to break it; --list shows the variants. Without it the first, with --every all."`
	Every           bool          `env:"-" help:"Play every variant of the category."`
	List            bool          `env:"-" help:"Show categories and variants, and what they do."`
	Rate            rateFlag      `env:"-" default:"500/s" placeholder:"N/s" help:"Requests that are offered (${default})."`
	Budget          time.Duration `env:"-" default:"20ms" placeholder:"TIME" help:"The service's --budget (${default})."`
	Margin          time.Duration `env:"-" default:"50ms" placeholder:"TIME" help:"How much later than the budget an answer may reach the caller, beyond the delays of this machine (${default})."`
	DecideWithin    time.Duration `env:"-" default:"150ms" placeholder:"TIME" help:"How soon after +switch-master the new master must decide (${default})."`
	DownAfter       time.Duration `env:"-" default:"2s" placeholder:"TIME" help:"down-after-milliseconds, or a Cluster's node timeout (${default})."`
	FailoverTimeout time.Duration `env:"-" default:"3s" placeholder:"TIME" help:"failover-timeout of the Sentinels (${default})."`
	Before          time.Duration `env:"-" default:"3s" placeholder:"TIME" help:"How long the load runs before anything is broken (${default})."`
	Outage          time.Duration `env:"-" default:"3s" placeholder:"TIME" help:"How long it stays broken once the topology has answered (${default})."`
	Hurry           bool          `env:"-" help:"Let the Sentinels look at their nodes every second and not every ten: a master that comes back is told sooner that it is a replica now, and T6 is earlier."`
	RedisServer     string        `env:"-" placeholder:"PATH" help:"redis-server to run (that on PATH)."`

	JSON     string `env:"-" name:"json" placeholder:"FILE" help:"Write the reports as JSON; - is standard output."`
	HTML     string `env:"-" name:"html" placeholder:"FILE" help:"Write the reports as one HTML page that needs nothing from elsewhere."`
	Evidence string `env:"-" default:"." type:"path" placeholder:"DIR" help:"Where a drill that failed leaves a folder with logs and states (the working directory)."`
	Keep     bool   `env:"-" help:"Leave that folder after every drill."`

	drillAttach
}

// Help teaches by example.
func (drillCmd) Help() string {
	return `Starts a master, two replicas and three Sentinels (or a Cluster) on loopback and a ratelimit service, offers a
steady load, breaks something, and says when the fault was noticed, when limits were enforced again, and whether any
bound was broken. Needs redis-server. Exit code 0 if everything held, 1 if not.

  ratelimit drill master-crash --variant freeze --html drill.html
  ratelimit drill all --json drills.json --html drills.html

--attach only looks: it listens to the Sentinels of your own deployment, offers load to a service of yours if you name
a descriptor, and reports after --duration or Ctrl-C. --inject runs your own fault; make it a real one: SENTINEL
FAILOVER skips the detection, the vote and the lost connections, and so proves little.

  ratelimit drill --attach --redis sentinel://s1,s2,s3/mymaster --service ratelimit:8081 --domain mesh \
      --ask endpoint_id=resumint.tailor --ask tenant=drill --inject 'ssh redis-0 systemctl kill -s KILL redis'`
}

// Run plays the drills one after the other and prints a report of each.
func (c *drillCmd) Run(s *streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if c.List {
		return c.list(s.out)
	}
	if c.Attach {
		return c.attach(ctx, s)
	}
	configs, err := c.configs(s.err)
	if err != nil {
		return &usageError{command: "drill", err: err}
	}
	var reports []*journal.Report
	var faults []error
	for _, cfg := range configs {
		fmt.Fprintf(s.err, "drill %v / %s\n", cfg.Category, cfg.Variant)
		report, err := drill.Run(ctx, cfg)
		faults = append(faults, err)
		if report == nil {
			break
		}
		reports = append(reports, report)
		faults = append(faults, page.Text(c.terminal(s), report))
		fmt.Fprintln(c.terminal(s))
	}
	if len(configs) > 1 && len(reports) > 0 {
		faults = append(faults, page.Summary(c.terminal(s), reports))
	}
	return errors.Join(append(faults, c.write(s, reports), failed(reports))...)
}

// terminal is where text goes: not among JSON.
func (c *drillCmd) terminal(s *streams) io.Writer {
	if c.JSON == "-" {
		return s.err
	}
	return s.out
}

// failed is an error if any report is.
func failed(reports []*journal.Report) error {
	n := 0
	for _, r := range reports {
		if !r.Passed {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("drill: %d of %d failed", n, len(reports))
}

// configs are the drills to play.
func (c *drillCmd) configs(progress io.Writer) ([]drill.Config, error) {
	if err := c.unusedWithoutAttach(); err != nil {
		return nil, err
	}
	categories, err := c.categories()
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	var list []drill.Config
	for _, category := range categories {
		variants, err := c.variants(category)
		if err != nil {
			return nil, err
		}
		for _, variant := range variants {
			cfg := c.config(progress)
			cfg.Category, cfg.Variant, cfg.Program = category, variant, program
			if err := cfg.Validate(); err != nil {
				return nil, err
			}
			list = append(list, cfg)
		}
	}
	return list, nil
}

// config is what all drills have in common.
func (c *drillCmd) config(progress io.Writer) drill.Config {
	return drill.Config{
		Server: c.RedisServer, Rate: float64(c.Rate), Budget: c.Budget, Margin: c.Margin, DecideWithin: c.DecideWithin,
		DownAfter: c.DownAfter, FailoverTimeout: c.FailoverTimeout, Before: c.Before, Outage: c.Outage, Hurry: c.Hurry,
		Evidence: c.Evidence, Keep: c.Keep,
		OnProgress: func(line string) { fmt.Fprintln(progress, "  "+line) },
	}.WithDefaults()
}

// all stands for every category.
const all = "all"

func (c *drillCmd) categories() ([]journal.Category, error) {
	if c.Category == all {
		if c.Variant != "" {
			return nil, errors.New("--variant: a variant is of one category, not of all")
		}
		return journal.Categories[:], nil
	}
	for _, known := range journal.Categories {
		if known.String() == c.Category {
			return []journal.Category{known}, nil
		}
	}
	names := []string{}
	for _, known := range journal.Categories {
		names = append(names, known.String())
	}
	return nil, fmt.Errorf("CATEGORY is %q, must be one of %s, or %s", c.Category, strings.Join(names, ", "), all)
}

func (c *drillCmd) variants(category journal.Category) ([]string, error) {
	known := drill.Variants(category)
	if len(known) == 0 {
		return nil, fmt.Errorf("CATEGORY %v: there is no such drill", category)
	}
	if c.Every || c.Category == all {
		if c.Variant != "" {
			return nil, errors.New("--variant and --every exclude each other")
		}
		return known, nil
	}
	variant := cmp.Or(c.Variant, known[0])
	if !slices.Contains(known, variant) {
		return nil, fmt.Errorf("--variant: %v has no %q, only %s", category, variant, strings.Join(known, ", "))
	}
	return []string{variant}, nil
}

func (c *drillCmd) list(out io.Writer) error {
	for _, category := range journal.Categories {
		for _, variant := range drill.Variants(category) {
			if _, err := fmt.Fprintf(out, "%-14v %-9s %s\n", category, variant, drill.Title(category, variant)); err != nil {
				return err
			}
		}
	}
	return nil
}

// drillReports is the JSON form. Fields are added under the same number, never renamed.
type drillReports struct {
	Schema  int               `json:"schema"`
	Passed  bool              `json:"passed"`
	Reports []*journal.Report `json:"reports"`
}

// write puts the reports where the flags say.
func (c *drillCmd) write(s *streams, reports []*journal.Report) error {
	if len(reports) == 0 {
		return nil
	}
	var faults []error
	if c.JSON != "" {
		faults = append(faults, writeFile(s.out, c.JSON, func(w io.Writer) error {
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			return enc.Encode(drillReports{Schema: journal.Schema, Passed: failed(reports) == nil, Reports: reports})
		}))
	}
	if c.HTML != "" {
		faults = append(faults, writeFile(s.out, c.HTML, func(w io.Writer) error { return page.HTML(w, reports) }))
	}
	return errors.Join(faults...)
}

// writeFile writes to a file, or to out for "-".
func writeFile(out io.Writer, path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(out)
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	return errors.Join(write(f), f.Close())
}
