package cluster

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// counts are what is counted while requests pass.
type counts struct {
	crossSlot                             atomic.Uint64
	refundsDone, refundsLate, refundsLost atomic.Uint64
	moved, ask, tryAgain, clusterDown     atomic.Uint64
	reloads, reloadsFailed                atomic.Uint64
}

func (c *counts) redirected(kind redisstore.RedirectionKind) {
	switch kind {
	case redisstore.Moved:
		c.moved.Add(1)
	case redisstore.Ask:
		c.ask.Add(1)
	case redisstore.TryAgain:
		c.tryAgain.Add(1)
	case redisstore.ClusterDown:
		c.clusterDown.Add(1)
	}
}

// Stats are the numbers of a store for its observers.
type Stats struct {
	// Shards are those that are open, by address.
	Shards []ShardStats
	// Slots is how many have an owner.
	Slots int
	// Seen is when the topology was last heard of; zero: never yet. Epoch is the highest configuration epoch in it.
	Seen  time.Time
	Epoch uint64
	// Reloads counts how often the topology was asked for, ReloadsFailed how often in vain.
	Reloads, ReloadsFailed uint64
	// CrossSlot counts calls whose buckets were in several slots.
	CrossSlot uint64
	Refunds   RefundStats
	Redirects RedirectStats
	// Store is the sum over all shards; its Address is empty, its LastError the newest.
	Store redisstore.Stats
}

// ShardStats are the numbers of one shard.
type ShardStats struct {
	Address string
	// Slots is how many it owns.
	Slots   int
	Breaker failure.Snapshot
	Store   redisstore.Stats
}

// RefundStats count the refunds of cross-slot calls by how they ended.
type RefundStats struct {
	// Done came within the budget, Late after it. What was Lost was not given back, as far as is known.
	Done, Late, Lost uint64
	// InFlight are under way now.
	InFlight int
}

// RedirectStats count the calls that a node did not execute, by its answer.
type RedirectStats struct{ Moved, Ask, TryAgain, ClusterDown uint64 }

// Stats returns the numbers as they stand.
func (s *Store) Stats() Stats {
	c := &s.counts
	out := Stats{
		Reloads: c.reloads.Load(), ReloadsFailed: c.reloadsFailed.Load(), CrossSlot: c.crossSlot.Load(),
		Refunds: RefundStats{
			Done: c.refundsDone.Load(), Late: c.refundsLate.Load(), Lost: c.refundsLost.Load(),
			InFlight: int(s.refunding.Load()),
		},
		Redirects: RedirectStats{
			Moved: c.moved.Load(), Ask: c.ask.Load(), TryAgain: c.tryAgain.Load(), ClusterDown: c.clusterDown.Load(),
		},
	}
	s.mu.Lock()
	out.Seen, out.Epoch, out.Store.DenyCache = s.news.seen, s.news.epoch, s.past
	s.mu.Unlock()
	r := s.routes.Load()
	if r == nil {
		return out
	}
	for i, owned := range r.owned() {
		sh := r.shards[i]
		one := ShardStats{Address: sh.address, Slots: owned, Breaker: sh.breaker.Snapshot(), Store: sh.store.Stats()}
		out.Shards = append(out.Shards, one)
		out.Slots += owned
		out.Store = sum(out.Store, one.Store)
	}
	slices.SortFunc(out.Shards, func(a, b ShardStats) int { return cmp.Compare(a.Address, b.Address) })
	return out
}

// Masters are the servers that own slots, with the credentials as they are now.
func (s *Store) Masters() (targets []redisstore.Target) {
	r := s.routes.Load()
	if r == nil {
		return nil
	}
	for i, owned := range r.owned() {
		if owned == 0 {
			continue
		}
		if target, err := s.cfg.Access.Target(r.shards[i].address); err == nil {
			targets = append(targets, target)
		}
	}
	return targets
}

func sum(a, b redisstore.Stats) redisstore.Stats {
	a.Lanes += b.Lanes
	a.Connected += b.Connected
	a.Queued += b.Queued
	a.InFlight += b.InFlight
	a.DenyCache.Entries += b.DenyCache.Entries
	a.DenyCache.Hits += b.DenyCache.Hits
	a.DenyCache.Kept += b.DenyCache.Kept
	a.DenyCache.Evicted += b.DenyCache.Evicted
	if b.LastError.At.After(a.LastError.At) {
		a.LastError = b.LastError
	}
	return a
}
