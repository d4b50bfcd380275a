package cluster_test

import (
	"strings"
	"testing"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/storetest"
	"github.com/honestlimit/ratelimit/internal/topology"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// TestStore_Conforms runs the suite that every store passes.
func TestStore_Conforms(t *testing.T) {
	set := startCluster(t, topology.Config{Replicas: topology.None})
	r := run(t, quick(addresses(set)...)).serving()
	t.Run("in one slot", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) failure.Store { return tagged{r} })
		if got := r.Stats().CrossSlot; got > 0 {
			t.Errorf("%d calls were in several slots", got)
		}
	})
	t.Run("across slots", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) failure.Store { return settled{r} })
		if got := r.Stats(); got.CrossSlot == 0 || got.Refunds.Done == 0 || got.Refunds.Lost > 0 {
			t.Errorf("%d calls in several slots, refunds %+v", got.CrossSlot, got.Refunds)
		}
	})
}

// tagged has all keys in one slot: everything about several buckets is as atomic as in one server.
type tagged struct{ failure.Store }

func (s tagged) Submit(c *failure.Call) {
	for i, charge := range c.Charges {
		if !strings.HasPrefix(charge.Key, "{suite}") {
			c.Charges[i].Key = "{suite}" + charge.Key
		}
	}
	s.Store.Submit(c)
}

// settled waits until nothing is being given back before it asks: a request that is denied has its answer a moment
// before its refunds arrive, and that is all the suite has to forgive.
type settled struct{ *rig }

func (s settled) Submit(c *failure.Call) {
	redistest.Eventually(s.t, "refunds arrive", func() bool { return s.Stats().Refunds.InFlight == 0 })
	s.rig.Submit(c)
}
