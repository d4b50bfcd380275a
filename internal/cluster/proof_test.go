package cluster_test

import (
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/cluster"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/topology"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// TestStore_EachShardProvesToWrite: a shard that answers everything but decisions is not tried in vain, whichever slots
// it owns, and is tried as soon as it can write.
func TestStore_EachShardProvesToWrite(t *testing.T) {
	set := startCluster(t, topology.Config{})
	cfg := quick(addresses(set)...)
	cfg.Breaker.EarlyEnd = time.Millisecond
	var tries atomic.Int64
	cfg.Breaker.OnTransition = func(m failure.Transition) {
		if m.To == failure.HalfOpen {
			tries.Add(1)
		}
	}
	r := run(t, cfg).serving()
	for address, key := range r.ProofKeys() {
		if got := owner(t, set, cluster.Slot(key)); got.Addr() != address {
			t.Errorf("%s is to write %s, which is at %s", address, key, got.Addr())
		}
	}

	mute := owner(t, set, 16383)
	unable := func(replicas string) {
		if err := mute.Client().ConfigSet(t.Context(), "min-replicas-to-write", replicas).Err(); err != nil {
			t.Fatal(err)
		}
	}
	unable("3")
	load := beat(r, keyIn(16000, 16383, 1))
	redistest.Eventually(t, "the breaker of the shard is open", func() bool {
		return load.count(failure.CauseBreakerOpen) > 0
	})
	// Of those under way when the breaker opened, none is a proof.
	refused := refusals(t, mute) + 2
	redistest.Eventually(t, "several proofs have failed", func() bool { return refusals(t, mute) > refused+5 })
	if got := tries.Load(); got > 0 {
		t.Errorf("the breaker was half opened %d times for a shard that cannot write", got)
	}
	unable("0")
	redistest.Eventually(t, "calls succeed", func() bool { return !load.recovered().IsZero() })
}

// failedCalls is where INFO counts scripts that ended in an error.
var failedCalls = regexp.MustCompile(`cmdstat_evalsha:.*failed_calls=(\d+)`)

// refusals counts the scripts that the node failed.
func refusals(t *testing.T, n *topology.Node) int {
	t.Helper()
	found := failedCalls.FindStringSubmatch(n.Client().Info(t.Context(), "commandstats").Val())
	if found == nil {
		return 0
	}
	count, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return count
}
