package cluster_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/honestlimit/ratelimit/internal/cluster"
	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/topology"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var endpoint = &limit.Endpoint{Domain: "test", ID: "test", FailMode: limit.FailClosed}

// yearly holds n tokens and refills too slowly for any test to see.
func yearly(n int64) limit.Limit {
	return limit.NewTokenBucket(n*limit.Micro, limit.Rate{Micro: limit.Micro, Period: limit.MaxPeriod})
}

func charge(key string, l limit.Limit, cost int64) limit.Charge {
	return limit.Charge{Key: "rl:v1:" + key, Limit: l, Cost: cost, Endpoint: endpoint}
}

// startCluster starts a real Cluster. Cleanup ends it.
func startCluster(t testing.TB, cfg topology.Config) *topology.Cluster {
	t.Helper()
	cfg.Dir = t.TempDir()
	c, err := topology.StartCluster(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// addresses are where the nodes are.
func addresses(c *topology.Cluster) (all []string) {
	for _, n := range c.Data() {
		all = append(all, n.Addr())
	}
	return all
}

// quick makes everything that waits wait less, and what must not fail on a busy machine patient.
func quick(seeds ...string) cluster.Config {
	return cluster.Config{
		Addresses: seeds,
		Store: redisstore.Config{
			BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond,
			SocketTimeout: time.Second, DialTimeout: time.Second, ProofInterval: 20 * time.Millisecond,
			Budget: time.Second,
		},
		Breaker: failure.BreakerConfig{
			Budget: time.Second, SilenceInterval: time.Second, EarlyEnd: 10 * time.Millisecond, Jitter: -1,
			Quarantine: 10 * time.Second,
		},
		PollInterval: time.Second, ReloadSpacing: 20 * time.Millisecond, Timeout: 500 * time.Millisecond,
		RefundTimeout: redistest.Patience,
	}
}

// rig is a running store.
type rig struct {
	*cluster.Store
	t    testing.TB
	stop func() // ends Run and waits for it
}

func run(t testing.TB, cfg cluster.Config) *rig {
	t.Helper()
	s, err := cluster.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	r := &rig{Store: s, t: t, stop: func() { cancel(); running.Wait() }}
	t.Cleanup(r.stop)
	return r
}

// serving waits until every shard that owns slots has all its lanes.
func (r *rig) serving() *rig {
	r.t.Helper()
	defer func() {
		if r.t.Failed() {
			r.t.Logf("stats: %+v", r.Stats())
		}
	}()
	redistest.Eventually(r.t, "every shard serves", func() bool {
		s := r.Stats()
		return s.Slots == cluster.Slots && s.Store.Connected == s.Store.Lanes
	})
	return r
}

// submit hands over a call whose caller would wait for a long time.
func (r *rig) submit(charges ...limit.Charge) *failure.Call {
	c := failure.NewCall(charges, time.Now().Add(redistest.Patience))
	r.Submit(c)
	return c
}

// cause waits for c and returns what it failed of.
func (r *rig) cause(c *failure.Call) failure.Cause {
	r.t.Helper()
	timeout := time.NewTimer(redistest.Patience)
	defer timeout.Stop()
	select {
	case <-c.Done():
		return c.Cause()
	case <-timeout.C:
		r.t.Fatalf("a call was never completed; stats: %+v", r.Stats())
		return 0
	}
}

func (r *rig) take(charges ...limit.Charge) []limit.Result {
	r.t.Helper()
	c := r.submit(charges...)
	if got := r.cause(c); got != failure.CauseNone {
		r.t.Fatalf("a call failed of %v: %+v", got, r.Stats())
	}
	return c.Results
}

// left is what a bucket still holds, in tokens.
func (r *rig) left(key string, l limit.Limit) int64 {
	r.t.Helper()
	return r.take(charge(key, l, 0))[0].Remaining
}

// keyIn returns a key of the slots from first to last, another one for each n.
func keyIn(first, last uint16, n int) string {
	for i := 0; ; i++ {
		key := fmt.Sprintf("{%d-%d}", n, i)
		if slot := cluster.Slot("rl:v1:" + key); first <= slot && slot <= last {
			return key
		}
	}
}

// charges are those of an ordinary request: one token of a bucket that lasts.
func (r *rig) charges(key string) []limit.Charge {
	return []limit.Charge{charge(key, yearly(limit.MaxTokens), 1)}
}
