// Package load puts a rate limit service under load: it sends ShouldRateLimit requests to any service that speaks
// envoy.service.ratelimit.v3, in a closed loop (each worker sends when it has its answer) or an open one (requests
// arrive on a schedule that does not care how the service feels), breaks something in the middle if asked to, and
// reports what came back.
//
// In an open loop the latency of a request counts from the moment it was due, not from the moment it could be sent,
// so a service that stalls is charged with every request that the stall delayed (no coordinated omission).
//
// It knows nothing of the service that it loads but the protocol, and no terminal, flag or file. Run keeps no state
// between calls; several may run at the same time.
package load

import (
	"context"
	"errors"
	"fmt"
)

// Run sends the load that cfg describes and returns once the last answer is in or has been given up. It returns
// *FieldError values, joined, if cfg is invalid, and an error if the target cannot be reached at the start.
//
// With any later error (ctx was cancelled, the fault could not be caused, a process disappeared) the report is
// still valid and covers what was sent until then.
func Run(ctx context.Context, cfg Config) (Report, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return Report{}, err
	}
	messages, err := newMessages(cfg)
	if err != nil {
		return Report{}, err
	}
	target, err := connect(ctx, cfg)
	if err != nil {
		return Report{}, err
	}
	meter, err := newMeter(cfg.PIDs)
	if err != nil {
		return Report{}, errors.Join(err, target.close())
	}
	r := newRunner(cfg, target, messages, meter)
	err = r.run(ctx)
	if ctx.Err() != nil {
		err = errors.Join(fmt.Errorf("load: stopped early: %w", context.Cause(ctx)), err)
	}
	return r.report(), errors.Join(err, target.close())
}
