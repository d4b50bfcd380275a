package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/topology"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// owner is the node that owns the slot of key.
func owner(t testing.TB, set *topology.Cluster, slot uint16) *topology.Node {
	t.Helper()
	n, err := set.Owner(t.Context(), int(slot))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// pulse makes a call each few milliseconds, and writes down how they end.
type pulse struct {
	mu      sync.Mutex
	causes  map[failure.Cause]int
	first   time.Time // success after a failure
	slowest time.Duration
	stop    func()
}

// beat begins a pulse of calls for the key, each with a budget of 100 ms.
func beat(r *rig, key string) *pulse {
	p := &pulse{causes: map[failure.Cause]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	var beating sync.WaitGroup
	tick := time.NewTicker(2 * time.Millisecond)
	beating.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				p.once(r, key)
			}
		}
	})
	p.stop = func() { cancel(); beating.Wait(); tick.Stop() }
	r.t.Cleanup(p.stop)
	return p
}

func (p *pulse) once(r *rig, key string) {
	const budget = 100 * time.Millisecond
	start := time.Now()
	c := failure.NewCall(r.charges(key), start.Add(budget))
	r.Submit(c)
	cause := failure.CauseDeadline
	timer := time.NewTimer(budget)
	defer timer.Stop()
	select {
	case <-c.Done():
		cause = c.Cause()
	case <-timer.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.causes[cause]++
	p.slowest = max(p.slowest, time.Since(start))
	if len(p.causes) > 1 && cause == failure.CauseNone && p.first.IsZero() {
		p.first = time.Now()
	}
}

func (p *pulse) count(c failure.Cause) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.causes[c]
}

// failures is the number of beats that failed.
func (p *pulse) failures() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c, count := range p.causes {
		if c != failure.CauseNone {
			n += count
		}
	}
	return n
}

func (p *pulse) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%v, the slowest after %v", p.causes, p.slowest)
}

// recovered is when calls succeeded again.
func (p *pulse) recovered() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first
}

// promotion waits until a replica of the node says that it is a master, and returns when it did.
func promotion(t testing.TB, replicas []*topology.Node) time.Time {
	t.Helper()
	redistest.Eventually(t, "a replica is promoted", func() bool {
		return slices.ContainsFunc(replicas, func(n *topology.Node) bool {
			role, err := n.Client().Do(t.Context(), "role").Slice()
			return err == nil && len(role) > 0 && role[0] == "master"
		})
	})
	return time.Now()
}

// TestStore_AMasterIsGone kills or freezes the master of some slots. Their calls fail at once, the others never do, and
// the replica decides as soon as it is promoted. The old master that comes back changes nothing.
func TestStore_AMasterIsGone(t *testing.T) {
	for name, c := range map[string]struct{ gone, back func(*topology.Node) error }{
		"killed": {(*topology.Node).Kill, func(n *topology.Node) error { return n.Restart(context.Background()) }},
		"frozen": {(*topology.Node).Freeze, (*topology.Node).Thaw},
	} {
		t.Run(name, func(t *testing.T) {
			// Without full coverage, which deploy/redis turns off as well, the other masters go on.
			set := startCluster(t, topology.Config{RedisLines: []string{"cluster-require-full-coverage no"}})
			cfg := quick(addresses(set)...)
			cfg.Store.SocketTimeout, cfg.Timeout = 250*time.Millisecond, 200*time.Millisecond
			cfg.Breaker.Budget, cfg.Breaker.SilenceInterval = 60*time.Millisecond, 25*time.Millisecond
			cfg.Breaker.EarlyEnd, cfg.ReloadSpacing, cfg.PollInterval = 500*time.Millisecond, 100*time.Millisecond, time.Minute
			r := run(t, cfg).serving()
			lost, others := keyIn(0, 5000, 1), keyIn(6000, 16383, 1)
			master := owner(t, set, 0)
			replicas, err := set.Replicas(t.Context(), master)
			if err != nil {
				t.Fatal(err)
			}
			dying, living := beat(r, lost), beat(r, others)
			redistest.Eventually(t, "calls succeed", func() bool {
				return dying.count(failure.CauseNone) > 20 && living.count(failure.CauseNone) > 20
			})
			start := time.Now()
			if err := c.gone(master); err != nil {
				t.Fatal(err)
			}
			redistest.Eventually(t, "the breaker of the shard is open", func() bool {
				return dying.count(failure.CauseBreakerOpen) > 0
			})
			promoted := promotion(t, replicas)
			redistest.Eventually(t, "calls succeed again", func() bool { return !dying.recovered().IsZero() })
			t.Logf("promoted after %v, first decision %v later", promoted.Sub(start).Round(time.Millisecond),
				dying.recovered().Sub(promoted).Round(time.Millisecond))
			if late := dying.recovered().Sub(promoted); late > 3*time.Second {
				t.Errorf("the promoted replica was asked after %v", late)
			}
			if err := c.back(master); err != nil {
				t.Fatal(err)
			}
			redistest.Eventually(t, "the Cluster is whole again", func() bool { return set.Healthy(t.Context()) == nil })
			before := dying.failures()
			succeeded := dying.count(failure.CauseNone)
			redistest.Eventually(t, "more calls succeed", func() bool { return dying.count(failure.CauseNone) > succeeded+100 })
			dying.stop()
			living.stop()
			t.Logf("lost slots: %v; others: %v", dying, living)
			if got := dying.failures(); got > before {
				t.Errorf("%d calls failed after the old master was back", got-before)
			}
			if n := living.failures(); n > 0 {
				t.Errorf("%d calls of other slots failed: %v", n, living)
			}
		})
	}
}

// TestStore_NoTwoShardsAreConfused checks that a shard decides what is its own, wherever the topology was learnt.
func TestStore_OneSeedIsEnough(t *testing.T) {
	set := startCluster(t, topology.Config{Replicas: topology.None})
	r := run(t, quick("127.0.0.1:1", addresses(set)[1])).serving()
	var submitted atomic.Int64
	for n := range 200 {
		r.take(charge(fmt.Sprintf("{%d}", n), yearly(1), 1))
		submitted.Add(1)
	}
	stats := r.Stats()
	if len(stats.Shards) != 3 || stats.Redirects.Moved > 0 {
		t.Errorf("%d shards, redirects %+v", len(stats.Shards), stats.Redirects)
	}
	total := int64(0)
	for _, n := range set.Data() {
		total += n.Client().DBSize(t.Context()).Val()
	}
	if total < submitted.Load() {
		t.Errorf("%d buckets in the Cluster, want %d", total, submitted.Load())
	}
}
