package main

import (
	"fmt"
	"io"
	"time"

	"github.com/honestlimit/ratelimit/test/token"
)

type tokenCmd struct {
	Dir    string        `help:"Where the keys are: jwks.json is for Envoy, key.pem is private." default:".cache/trial"`
	Tenant string        `help:"Whom the token names." default:"acme"`
	Life   time.Duration `help:"How long it is good for." default:"24h"`
}

// Run prints the token and nothing else.
func (c *tokenCmd) Run(stdout io.Writer) error {
	issuer, err := token.Open(c.Dir)
	if err != nil {
		return err
	}
	text, err := issuer.Token(c.Tenant, c.Life)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, text)
	return err
}
