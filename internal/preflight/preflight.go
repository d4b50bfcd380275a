// Package preflight examines a Redis set-up before a service depends on it: it gathers facts from every node, then
// judges them, check by check. Gathering (survey*.go) is the only part that talks to servers; judging is pure.
//
// It changes nothing on the servers, but for three things that pass: Sentinels write their configuration file anew
// (SENTINEL FLUSHCONFIG), the script of the service is loaded (SCRIPT LOAD), and one bucket rl:preflight:... on each
// master is charged to measure latency, and expires by itself within seconds. No result holds a password, a key of a
// bucket or an argument of a command that somebody else sent.
//
// It knows no flags, no policies and no metrics. Run may be called by several goroutines at once.
package preflight

import (
	"context"
	"time"
)

// Run examines the set-up that cfg names. It errs only if cfg is invalid or names files that cannot be read; a server
// that cannot be reached is a finding. It returns within cfg.Total and one cfg.Timeout.
func Run(ctx context.Context, cfg Config) (Report, error) {
	s, err := newSurvey(cfg)
	if err != nil {
		return Report{}, err
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Total)
	defer cancel()
	f := s.gather(ctx)
	return newReport(f, time.Since(start)), nil
}
