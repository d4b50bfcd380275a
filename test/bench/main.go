// Command bench measures the service as its clients and its operators see it, and writes what it finds into
// docs/performance.md, its plots, and README.md. Load generator, service and Redis run on this machine and share its
// cores, so that only ratios inside one round say something about the service: what is compared runs in turn, round
// after round, and figures are medians over the rounds.
//
//	bench [flags]    measures, keeps the raw figures in .cache/bench/results.json, and renders
//	bench render     renders from those figures again
//	bench soak       loads for long with freezes of Redis, and fails if memory or goroutines grow
//	bench pgo        records a profile, measures whether it pays, and keeps it if it does
//	bench floor      serves the constant answer that everything is compared with
//
// PEER, PEER_NAME and PEER_ADDR in the environment add another service to the rounds; see docs/performance.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/honestlimit/ratelimit/internal/process"
)

// options is the command line.
type options struct {
	binary               string
	duration, warmup     time.Duration
	rounds               int
	connections, streams int
	keys                 int
	soak                 time.Duration
	only                 string
	peer                 peer
}

func parse(args []string) (options, error) {
	o := options{peer: peerFromEnvironment()}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.binary, "binary", ".cache/bin/ratelimit", "the ratelimit binary to measure")
	flags.DurationVar(&o.duration, "duration", 3*time.Second, "load in each cell and round")
	flags.DurationVar(&o.warmup, "warmup", 500*time.Millisecond, "load before that, not counted")
	flags.IntVar(&o.rounds, "rounds", 5, "interleaved rounds")
	flags.IntVar(&o.connections, "connections", 4, "connections of the load generator")
	flags.IntVar(&o.streams, "streams", 16, "requests at a time on each connection of a closed loop")
	flags.IntVar(&o.keys, "keys", 10_000_000, "most buckets to grow to; 10 million take 2 GB of Redis and a minute")
	flags.DurationVar(&o.soak, "soak", 10*time.Minute, "length of bench soak")
	flags.StringVar(&o.only, "only", "", "sections to measure instead of all of "+strings.Join(sectionNames(), ","))
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.rounds < 1 || o.duration < 10*time.Millisecond || o.keys < 1 || flags.NArg() > 0 {
		return o, errors.New("--rounds and --keys must be at least 1, --duration at least 10ms, and there are no arguments")
	}
	return o, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	mode := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		mode, args = args[0], args[1:]
	}
	if mode == "floor" {
		return serveFloor(ctx, args)
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer os.RemoveAll(b.lab.dir)
	// As `ratelimit load` does: the processor time is wanted by what is measured.
	debug.SetGCPercent(800)
	switch mode {
	case "":
		return b.measure(ctx, benchSections)
	case "soak":
		return errors.Join(b.measure(ctx, []section{{"soak", (*bench).soak}}), b.results.Soak.verdict())
	case "pgo":
		return b.measure(ctx, []section{{"pgo", (*bench).profile}})
	case "render":
		return b.results.render(b.root)
	default:
		return fmt.Errorf("there is no mode %q; see go doc ./test/bench", mode)
	}
}

// bench is a run of this program.
type bench struct {
	opts    options
	root    string
	lab     *lab
	results *results
}

func newBench(o options) (*bench, error) {
	root, err := process.Root()
	if err != nil {
		return nil, err
	}
	results, err := loadResults(root)
	if err != nil {
		return nil, err
	}
	if o.binary, err = filepath.Abs(o.binary); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ratelimit-bench-")
	if err != nil {
		return nil, err
	}
	return &bench{
		opts: o, root: root, results: results, lab: &lab{opts: o, dir: dir, progress: os.Stderr},
	}, nil
}

// section is a part of the measurement that can be run by itself.
type section struct {
	name    string
	measure func(*bench, context.Context) error
}

var benchSections = []section{
	{"micro", (*bench).micro},
	{"saturation", (*bench).saturation},
	{"outage", (*bench).outage},
	{"freeze", (*bench).freeze},
	{"growth", (*bench).growth},
	{"memory", (*bench).memory},
	{"wire", (*bench).wire},
	{"flood", (*bench).flood},
	{"mesh", (*bench).mesh},
	{"knobs", (*bench).knobs},
}

func sectionNames() []string {
	var names []string
	for _, s := range benchSections {
		names = append(names, s.name)
	}
	return names
}

// measure runs the sections that were asked for. One that fails does not keep the others from being measured; what was
// measured of it is not kept.
func (b *bench) measure(ctx context.Context, sections []section) error {
	asked := strings.Split(b.opts.only, ",")
	var errs []error
	for _, s := range sections {
		if b.opts.only != "" && !slices.Contains(asked, s.name) {
			continue
		}
		started := time.Now()
		before := *b.results
		if err := s.measure(b, ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
			if ctx.Err() != nil {
				return errors.Join(errs...)
			}
			*b.results = before
			continue
		}
		b.results.Sections[s.name] = b.origin(started)
		if err := b.results.save(b.root); err != nil {
			return errors.Join(append(errs, err)...)
		}
		b.lab.sayf("%s took %v", s.name, time.Since(started).Round(time.Second))
	}
	return errors.Join(append(errs, b.results.render(b.root))...)
}

func (b *bench) origin(started time.Time) origin {
	return origin{
		When: started, Machine: thisMachine(b.opts.binary), Rounds: b.opts.rounds, Duration: b.opts.duration,
		Warmup: b.opts.warmup, Connections: b.opts.connections, Streams: b.opts.streams,
	}
}
