package cluster

import (
	"time"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// refund gives back what a part was charged. Nobody waits for it, and nothing is tried twice.
//
// It goes to the node that was charged, or to where that one has handed the slot in the meantime: a node that took the
// slot over when the other died may never have heard of the charge, and would admit more for it than it should.
func (s *Store) refund(p *part) {
	charges := make([]limit.Charge, 0, len(p.Charges))
	for _, c := range p.Charges {
		if c.Cost > 0 {
			c.Cost, c.At = -c.Cost, p.At
			charges = append(charges, c)
		}
	}
	if len(charges) == 0 {
		return
	}
	r := s.routes.Load()
	if r == nil || r.owner(p.Route.Slot) != p.shard || p.shard.breaker.State() != failure.Closed {
		s.counts.refundsLost.Add(1)
		return
	}
	if s.refunding.Add(1) > int64(s.cfg.MaxRefunds) {
		s.refunding.Add(-1)
		s.counts.refundsLost.Add(1)
		return
	}
	back := failure.NewPart(charges, time.Now().Add(s.cfg.RefundTimeout), func(back *failure.Call) {
		s.refunding.Add(-1)
		s.refunded(back.Cause(), time.Since(p.sent))
	})
	back.Route = failure.Route{Slot: p.Route.Slot, Alone: s.restless.has(p.Route.Slot)}
	p.shard.store.Submit(back)
}

// refunded counts a refund that ended so long after its charge was sent.
func (s *Store) refunded(c failure.Cause, after time.Duration) {
	switch {
	case c != failure.CauseNone:
		s.counts.refundsLost.Add(1)
	case after > s.cfg.Store.Budget:
		s.counts.refundsLate.Add(1)
	default:
		s.counts.refundsDone.Add(1)
	}
}

// isRefund tells whether c gives back.
func isRefund(c *failure.Call) bool { return c.Charges[0].Cost < 0 }
