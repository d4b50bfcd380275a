package main

import (
	"time"

	"github.com/honestlimit/ratelimit/internal/cluster"
	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/sentinel"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// statePage is what /state shows.
type statePage struct {
	Serving  bool         `json:"serving"`
	Store    string       `json:"store"`
	InFlight int          `json:"decisions_in_flight"`
	Redis    *redisPage   `json:"redis,omitempty"`
	Memory   *memoryPage  `json:"memory,omitempty"`
	Breaker  *breakerPage `json:"breaker,omitempty"`

	Sentinels *sentinel.Stats `json:"sentinels,omitempty"`
	Cluster   *clusterPage    `json:"cluster,omitempty"`
}

type clusterPage struct {
	Slots     int                   `json:"slots_owned"`
	Epoch     uint64                `json:"epoch"`
	Seen      time.Time             `json:"seen,omitzero"`
	Reloads   uint64                `json:"reloads"`
	Failed    uint64                `json:"reloads_failed"`
	CrossSlot uint64                `json:"cross_slot_requests"`
	Refunds   cluster.RefundStats   `json:"refunds"`
	Redirects cluster.RedirectStats `json:"redirects"`
	Shards    []shardPage           `json:"shards"`
}

type shardPage struct {
	Slots   int         `json:"slots"`
	Redis   redisPage   `json:"redis"`
	Breaker breakerPage `json:"breaker"`
}

type redisPage struct {
	Address   string     `json:"address"`
	Lanes     int        `json:"lanes"`
	Connected int        `json:"lanes_connected"`
	Queued    int        `json:"queued"`
	InFlight  int        `json:"in_flight"`
	DenyCache denyPage   `json:"deny_cache"`
	LastError *errorPage `json:"last_error,omitempty"`
}

type denyPage struct {
	Entries int    `json:"entries"`
	Hits    uint64 `json:"hits"`
	Kept    uint64 `json:"kept"`
	Evicted uint64 `json:"evicted"`
}

type errorPage struct {
	Cause string    `json:"cause"`
	Text  string    `json:"text,omitempty"`
	At    time.Time `json:"at"`
}

type memoryPage struct {
	Buckets int    `json:"buckets"`
	Expired uint64 `json:"expired"`
	Evicted uint64 `json:"evicted"`
}

type breakerPage struct {
	State     string     `json:"state"`
	Since     time.Time  `json:"since"`
	Failures  int        `json:"failures"`
	LastError *errorPage `json:"last_failure,omitempty"`
	OpenUntil time.Time  `json:"open_until,omitzero"`
	Opened    uint64     `json:"opened"`
}

func (s *service) statePage() statePage {
	page := statePage{Serving: s.serving.Load(), Store: s.backing.name, InFlight: s.guard.InFlight()}
	if s.backing.redis != nil {
		now := redisPageOf(s.backing.redis())
		page.Redis = &now
	}
	if s.backing.sentinels != nil {
		now := s.backing.sentinels()
		page.Sentinels = &now
	}
	if s.backing.memory != nil {
		now := s.backing.memory()
		page.Memory = &memoryPage{Buckets: now.Buckets, Expired: now.Expired, Evicted: now.Evicted}
	}
	if s.backing.breaker != nil {
		now := breakerPageOf(s.backing.breaker.Snapshot())
		page.Breaker = &now
	}
	if s.backing.cluster != nil {
		now := clusterPageOf(s.backing.cluster())
		page.Cluster = &now
	}
	return page
}

func redisPageOf(now redisstore.Stats) redisPage {
	return redisPage{
		Address: now.Address, Lanes: now.Lanes, Connected: now.Connected, Queued: now.Queued,
		InFlight: now.InFlight, DenyCache: denyPage(now.DenyCache),
		LastError: errorOf(now.LastError.Cause, now.LastError.Text, now.LastError.At),
	}
}

func breakerPageOf(now failure.Snapshot) breakerPage {
	return breakerPage{
		State: now.State.String(), Since: now.Since, Failures: now.Failures, OpenUntil: now.OpenUntil,
		Opened: now.Opened, LastError: errorOf(now.LastCause, "", now.LastFailure),
	}
}

func clusterPageOf(now cluster.Stats) clusterPage {
	page := clusterPage{
		Slots: now.Slots, Epoch: now.Epoch, Seen: now.Seen, Reloads: now.Reloads, Failed: now.ReloadsFailed,
		CrossSlot: now.CrossSlot, Refunds: now.Refunds, Redirects: now.Redirects, Shards: []shardPage{},
	}
	for _, shard := range now.Shards {
		one := shardPage{Slots: shard.Slots, Redis: redisPageOf(shard.Store), Breaker: breakerPageOf(shard.Breaker)}
		one.Redis.Address = shard.Address // also before the first dial
		page.Shards = append(page.Shards, one)
	}
	return page
}

// errorOf is nil if there was none.
func errorOf(cause failure.Cause, text string, at time.Time) *errorPage {
	if cause == failure.CauseNone {
		return nil
	}
	return &errorPage{Cause: cause.String(), Text: text, At: at}
}
