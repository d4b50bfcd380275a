// Command trial runs everything that a person needs to try the service on one machine: stand-in backends, tokens, the
// service itself, Envoy and, if asked, Redis. It is for trials and tests only and is no part of the product.
//
//	trial run       start all of it, print what to try, show every decision, stop all of it on Ctrl-C
//	trial backend   one stand-in backend, for a container
//	trial token     a token for a tenant, and the keys that Envoy verifies it with
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	Run     runCmd     `cmd:"" help:"Start the whole trial; Ctrl-C ends it."`
	Backend backendCmd `cmd:"" help:"Pretend to be one of the protected services."`
	Token   tokenCmd   `cmd:"" help:"Make the keys, where they are missing, and print a token for a tenant."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c cli
	parsed := kong.Parse(&c,
		kong.Name("trial"),
		kong.Description("Try the rate limit service on one machine."),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.BindTo(os.Stdout, (*io.Writer)(nil)),
	)
	if err := parsed.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "trial:", err)
		os.Exit(1)
	}
}
