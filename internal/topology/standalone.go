package topology

import (
	"context"
	"fmt"

	redisconf "github.com/honestlimit/ratelimit/deploy/redis"
)

// Standalone is one server without replicas.
type Standalone struct{ *Set }

// StartStandalone starts a server and waits until it answers. Of Config, what concerns replicas, Sentinels and Clusters
// has no effect. If ctx ends first, nothing is left running.
func StartStandalone(ctx context.Context, cfg Config) (*Standalone, error) {
	cfg.MinReplicas = number(cfg.MinReplicas, 0)
	s, err := newSet(cfg, 0)
	if err != nil {
		return nil, err
	}
	t := &Standalone{Set: s}
	healthy := func(ctx context.Context) error { return t.Data().client.Ping(ctx).Err() }
	if err := s.open(ctx, "a server", t.build, healthy); err != nil {
		return nil, err
	}
	return t, nil
}

// Data is the server.
func (t *Standalone) Data() *Node { return t.Node(dataName(0)) }

// URL is the address as the service takes it, without credentials.
func (t *Standalone) URL() string {
	if t.tls != nil {
		return "rediss://" + t.Data().Addr()
	}
	return "redis://" + t.Data().Addr()
}

func (t *Standalone) build(ctx context.Context) error {
	_, err := t.run(ctx, dataName(0), t.dataRecipe(0))
	return err
}

// dataRecipe is a data node outside of a Cluster.
func (s *Set) dataRecipe(i int) recipe {
	return recipe{
		main: redisconf.Redis, templates: []string{redisconf.Redis, redisconf.Users},
		source: dataSource(i), lines: s.dataLines,
	}
}

func dataName(i int) string     { return fmt.Sprintf("redis-%d", i) }
func sentinelName(i int) string { return fmt.Sprintf("sentinel-%d", i) }

// The addresses that nodes of a gated set connect from. Everything in 127.0.0.0/8 is this machine, on Linux.
func dataSource(i int) string     { return fmt.Sprintf("127.1.0.%d", i+1) }
func sentinelSource(i int) string { return fmt.Sprintf("127.2.0.%d", i+1) }
