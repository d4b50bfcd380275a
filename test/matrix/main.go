// Command matrix breaks Redis in every way that it knows, alone, under Sentinels and as a Cluster, while a real service
// decides a steady load, and writes what became of the answers into docs/failure-matrix.md. The faults are played by
// internal/drill, one after the other, each on servers of its own.
//
//	matrix [flags]    plays the faults, keeps the figures in .cache/matrix/results.json, and renders
//	matrix render     renders from those figures again
//
// The exit code is 1 if any expectation was not met: an answer outside the decision table, more admitted than the
// formulas of docs/redis.md allow, no recovery. The document marks it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill"
	"github.com/honestlimit/ratelimit/internal/process"
)

// options is the command line.
type options struct {
	binary, server string
	only           string
	runs           int
	rate           float64
	list, keep     bool
}

func parse(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("matrix", flag.ContinueOnError)
	flags.StringVar(&o.binary, "binary", ".cache/bin/ratelimit", "the ratelimit binary to put through it")
	flags.StringVar(&o.server, "redis-server", "redis-server", "the Redis to break")
	flags.StringVar(&o.only, "only", "", "faults, topologies or topology/fault to play, with commas between (all)")
	flags.IntVar(&o.runs, "runs", 1, "how often to play each")
	flags.Float64Var(&o.rate, "rate", 1250, "requests a second: two fifths to each fail mode, the rest to one bucket")
	flags.BoolVar(&o.keep, "keep", false, "leave logs and answers of every run in .cache/matrix, not of failures alone")
	flags.BoolVar(&o.list, "list", false, "show what there is to play")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.runs < 1 || flags.NArg() > 0 {
		return o, errors.New("-runs must be at least 1, and there are no arguments")
	}
	if names := unknown(o.only); len(names) > 0 {
		return o, fmt.Errorf("-only: nothing is called %s; see -list", strings.Join(names, ", "))
	}
	return o, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	root, err := process.Root()
	if err != nil {
		return err
	}
	results, err := loadResults(root)
	if err != nil {
		return err
	}
	if len(args) > 0 && args[0] == "render" {
		return results.write(root)
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.list {
		list()
		return nil
	}
	if o.binary, err = filepath.Abs(o.binary); err != nil {
		return err
	}
	m := matrix{opts: o, root: root, results: results, machine: thisMachine(o.server)}
	return errors.Join(m.play(ctx), results.write(root))
}

func list() {
	for _, on := range topologies {
		for _, f := range faults() {
			if _, played := f.cases[on]; played {
				fmt.Printf("%-28s %s\n", key(on, f), f.done)
			}
		}
	}
}

// The settings of every run. Sentinels and Clusters are more patient in production; how long they take is theirs.
const (
	budget    = 20 * time.Millisecond
	margin    = 250 * time.Millisecond
	downAfter = 1500 * time.Millisecond
	before    = 2 * time.Second
	after     = 2500 * time.Millisecond
	// decideWithin bounds T5 after the announcement. The goal is 150 ms; a machine that is busy must not fail.
	decideWithin = time.Second
	// busy is how long the load generator waits for a processor when a run says little about the service, and tries how
	// often such a run is played if it failed.
	busy  = 100 * time.Millisecond
	tries = 3
)

// matrix is a run of this program.
type matrix struct {
	opts    options
	root    string
	results *results
	machine machine
}

// play plays what was asked for. A fault that cannot be played does not keep the others from it.
func (m *matrix) play(ctx context.Context) error {
	var errs []error
	for _, on := range topologies {
		for _, f := range faults() {
			v, played := f.cases[on]
			if !played || !selected(m.opts.only, on, f) {
				continue
			}
			if err := m.row(ctx, on, f, v); err != nil {
				errs = append(errs, err)
			}
			if ctx.Err() != nil {
				return errors.Join(errs...)
			}
		}
	}
	return errors.Join(errs...)
}

// row plays one fault as often as was asked for, and keeps the figures.
func (m *matrix) row(ctx context.Context, on drill.Topology, f fault, v variant) error {
	started := time.Now()
	r := row{Origin: origin{
		When: started, Machine: m.machine, Rate: m.opts.rate, Budget: budget, DownAfter: downAfter,
	}}
	for range m.opts.runs {
		got, err := m.once(ctx, v, v.drill(f, on))
		if err != nil {
			return fmt.Errorf("%s: %w", key(on, f), err)
		}
		r.Runs = append(r.Runs, got)
	}
	m.results.Rows[key(on, f)] = r
	line := shown{row: r, fault: f, variant: v, on: on}.line()
	fmt.Fprintf(os.Stderr, "%-28s %5.1f s  %s\n", key(on, f), time.Since(started).Seconds(), line)
	return errors.Join(m.results.save(m.root), r.miss(key(on, f)))
}

// once plays a fault once, and again if the machine may be to blame for what it missed.
func (m *matrix) once(ctx context.Context, v variant, f drill.Fault) (figures, error) {
	for try := 1; ; try++ {
		j, report, err := drill.Play(ctx, m.config(v), f)
		if err != nil {
			return figures{}, err
		}
		got := measure(j, report, v)
		if len(got.Failures) == 0 || got.Stall < busy.Seconds() || try == tries {
			return got, nil
		}
		fmt.Fprintf(os.Stderr, "%-28s again: the machine was busy for %s\n", f.Name, span(got.Stall))
	}
}

func (m *matrix) config(v variant) drill.Config {
	cfg := drill.Config{
		Program: m.opts.binary, Server: m.opts.server, Rate: m.opts.rate, Budget: budget, Margin: margin,
		DownAfter: downAfter, Before: before, After: after, Hurry: true, DecideWithin: decideWithin,
		Evidence: filepath.Join(m.root, ".cache", "matrix"), Keep: m.opts.keep,
	}
	if v.after > 0 {
		cfg.After = v.after
	}
	return cfg
}
