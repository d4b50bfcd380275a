package redistest

import (
	"context"
	"testing"

	"github.com/honestlimit/ratelimit/internal/topology"
)

// Sentinel starts a master with replicas under Sentinels. Cfg.Dir may be empty. The test's Cleanup ends the set; if the
// test has failed by then, the newest of what every node logged is in the test's log.
func Sentinel(t testing.TB, cfg topology.Config) *topology.Sentinel {
	t.Helper()
	return launch(t, cfg, topology.StartSentinel)
}

// Cluster starts a Cluster, as Sentinel starts its set.
func Cluster(t testing.TB, cfg topology.Config) *topology.Cluster {
	t.Helper()
	return launch(t, cfg, topology.StartCluster)
}

// started is what sets have in common.
type started interface {
	Close() error
	Nodes() []*topology.Node
}

func launch[S started](
	t testing.TB, cfg topology.Config, start func(context.Context, topology.Config) (S, error),
) S {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	s, err := start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, n := range s.Nodes() {
			if t.Failed() {
				t.Logf("%s said last:\n%s", n.Name(), n.Tail())
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
