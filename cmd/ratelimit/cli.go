package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

// Exit codes.
const (
	exitOK    = 0
	exitFault = 1 // what was asked for could not be done
	exitUsage = 2 // it is not clear what was asked for
)

const description = `A rate limit service for Envoy whose speciality is failure.

Every request is answered within a time budget (20 ms), also while the store is slow, gone or broken: each endpoint's
policy says whether its requests are then denied (fail_closed, a 503) or admitted at a small rate of their own
(fail_open).

Try it:
  ratelimit check policies/                       what would be enforced, or every mistake at once
  ratelimit serve --policies policies/            limits kept in this process
  ratelimit serve --policies policies/ --redis redis://127.0.0.1:6379
  ratelimit explain --policies policies/ --domain mesh endpoint_id=resumint.tailor tenant=acme`

type cli struct {
	Serve   serveCmd   `cmd:"" help:"Answer Envoy's rate limit requests."`
	Check   checkCmd   `cmd:"" help:"Check policy files and show what they would enforce."`
	Explain explainCmd `cmd:"" help:"Show which policy governs a descriptor, and why not the others."`
	Load    loadCmd    `cmd:"" help:"Put a rate limit service under load, break something, and report."`

	Drill     drillCmd     `cmd:"" help:"Break Redis on purpose under load, and prove what becomes of decisions meanwhile."`
	Preflight preflightCmd `cmd:"" help:"Examine a Redis set-up before a launch: what would fail, and what to do about it."`

	Health  healthCmd  `cmd:"" help:"Ask a running service whether it serves."`
	Version versionCmd `cmd:"" help:"Show what was built."`
}

// streams are where a command writes.
type streams struct{ out, err io.Writer }

// newParser reads a command line into c. exit is called where help was asked for and printed.
func newParser(c *cli, s *streams, exit func(code int)) (*kong.Kong, error) {
	return kong.New(c,
		kong.Name("ratelimit"),
		kong.Description(description),
		kong.DefaultEnvars("RATELIMIT"),
		kong.Writers(s.out, s.err),
		kong.Bind(s),
		kong.Vars{
			"password": passwordVariable, "sentinelPassword": sentinelPasswordVariable,
			"adminPassword": adminPasswordVariable,
		},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Exit(exit),
	)
}

// run is the whole program but for the exit.
func run(args []string, stdout, stderr io.Writer) int {
	var c cli
	done := exitOK - 1
	parser, err := newParser(&c, &streams{out: stdout, err: stderr}, func(code int) { done = code })
	if err != nil {
		fmt.Fprintln(stderr, "ratelimit:", err)
		return exitFault
	}
	ctx, err := parser.Parse(args)
	if done >= exitOK { // --help was asked for and printed
		return done
	}
	if err != nil {
		fmt.Fprintf(stderr, "ratelimit: %v\nTry: ratelimit --help\n", err)
		return exitUsage
	}
	if err := ctx.Run(); err != nil {
		return complain(stderr, err)
	}
	return exitOK
}

// complain prints err and says how to exit.
func complain(stderr io.Writer, err error) int {
	var usage *usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(stderr, "%v\nTry: ratelimit %s --help\n", err, usage.command)
		return exitUsage
	}
	fmt.Fprintln(stderr, err)
	return exitFault
}

// usageError is a command line that makes no sense.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }
