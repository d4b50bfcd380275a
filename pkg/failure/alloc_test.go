//go:build !race

package failure_test

import (
	"context"
	"testing"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// The race detector makes sync.Pool forget on purpose, so allocations are counted without it.
func TestGuard_HotPathsAllocateNothing(t *testing.T) {
	answering := storeFunc(func(c *failure.Call) { c.Results[0].Allowed = true; c.Finish() })
	b := breakerIn(t, failure.Closed)
	ch, results := charges(closed), make([]limit.Result, 1)
	g, _ := newGuard(t, answering, b, 0, failure.GuardConfig{})
	ctx := context.Background()
	check := func(what string) {
		t.Helper()
		if n := testing.AllocsPerRun(2000, func() { g.Decide(ctx, ch, results) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", what, n)
		}
	}
	check("store answers at once")
	for b.State() != failure.Open {
		b.Failed(failure.CauseDial)
	}
	check("breaker open")
}
