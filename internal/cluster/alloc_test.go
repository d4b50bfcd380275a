//go:build !race

package cluster_test

import (
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// TestStore_OneSlotAllocatesNothing follows a call of one slot into the queue of its shard, which is full, so that
// nobody else works meanwhile.
func TestStore_OneSlotAllocatesNothing(t *testing.T) {
	f := startFakes(t, 2)
	cfg := quick(f.addresses()...)
	cfg.Store.Lanes, cfg.Store.QueueSize, cfg.PollInterval, cfg.Store.CheckInterval = 1, 1, time.Hour, time.Hour
	cfg.Store.SocketTimeout = redistest.Patience
	r := run(t, cfg).serving()
	release := make(chan struct{})
	defer close(release)
	f.answer(0, held(f, release, admits(2)))
	key := f.key(0, 1)
	r.submit(one(key))
	redistest.Eventually(t, "the lane waits", func() bool { return r.Stats().Store.InFlight == 1 })
	r.submit(one(key))
	ended := failure.CauseNone
	call := failure.NewPart([]limit.Charge{one(key), one(key + "2")}, time.Now().Add(redistest.Patience), func(c *failure.Call) {
		ended = c.Cause()
	})
	if n := testing.AllocsPerRun(2000, func() { r.Submit(call) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
	if ended != failure.CauseQueueFull {
		t.Errorf("the call ended with %v", ended)
	}
}
