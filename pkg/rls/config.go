package rls

import (
	"fmt"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// Config is what a Server may be told beyond its parts. The zero value is valid. The hooks run on the request's
// goroutine before it is answered, so they must be quick and must not block.
type Config struct {
	// Deny is how a request is denied while the store cannot decide. Default: DenyGRPCError.
	Deny Deny
	// OnUnmatched is told of each request that no policy governs. The domain is the request's if it is configured and
	// empty if not, so that it is fit for a label. Default: nobody is told.
	OnUnmatched func(domain string)
	// OnTooDear is told of each request that is denied for its cost alone, which no Decider sees; d.Governing is
	// the charge that is too dear. It must not keep the charges. Default: nobody is told.
	OnTooDear func(charges []limit.Charge, d failure.Decision)
}

// Validate reports every fault of c.
func (c Config) Validate() error {
	if c.Deny > DenyOverLimit {
		return fmt.Errorf("rls: Deny is %v, must be grpc_error or over_limit", c.Deny)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Deny == 0 {
		c.Deny = DenyGRPCError
	}
	if c.OnUnmatched == nil {
		c.OnUnmatched = func(string) {}
	}
	if c.OnTooDear == nil {
		c.OnTooDear = func([]limit.Charge, failure.Decision) {}
	}
	return c
}
