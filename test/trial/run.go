package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"

	"github.com/honestlimit/ratelimit/internal/process"
)

type runCmd struct {
	RateLimit string `help:"The service's program." name:"ratelimit" default:".cache/bin/ratelimit" type:"path"`
	Policies  string `help:"What the service enforces." default:"envoy/policies" type:"path"`
	Dir       string `help:"Where keys and logs go." default:".cache/trial" type:"path"`
	Redis     bool   `help:"Keep the limits in a redis-server of the trial's own."`
}

// Run starts everything and shows decisions until ctx ends or a program dies.
func (c *runCmd) Run(ctx context.Context, stdout io.Writer) error {
	cfg, err := c.stackConfig(ctx, stdout)
	if err != nil {
		return err
	}
	s, err := startStack(ctx, cfg)
	if err != nil {
		return err
	}
	err = s.show(ctx, stdout)
	fmt.Fprintln(stdout, "\nStopping.")
	return errors.Join(err, s.stop())
}

func (s *stack) show(ctx context.Context, stdout io.Writer) error {
	lessons, err := s.lessons()
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, s.guide(lessons))
	return s.wait(ctx)
}

func (c *runCmd) stackConfig(ctx context.Context, stdout io.Writer) (stackConfig, error) {
	cfg := stackConfig{RateLimit: c.RateLimit, Policies: c.Policies, Ports: usualPorts(), Decisions: stdout}
	var err error
	if cfg.Dir, err = filepath.Abs(c.Dir); err != nil {
		return stackConfig{}, err
	}
	if cfg.Envoy, err = process.Envoy(ctx); err != nil {
		return stackConfig{}, err
	}
	if !c.Redis {
		return cfg, nil
	}
	if cfg.Redis, err = exec.LookPath("redis-server"); err != nil {
		return stackConfig{}, fmt.Errorf("%w (Debian: apt-get install redis-server; macOS: brew install redis)", err)
	}
	return cfg, nil
}
