package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/honestlimit/ratelimit/internal/memstore"
	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/telemetry"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// backing is the store and what belongs to it.
type backing struct {
	store   failure.Store
	breaker *failure.Breaker        // nil for the embedded store, which cannot fail
	redis   func() redisstore.Stats // nil for the embedded store
	memory  func() memstore.Stats   // nil for Redis
	name    string                  // for people, without credentials
	work    []func(context.Context)
}

// openStore makes the store that the flags ask for. Nothing is connected before its work runs.
func (c *serveCmd) openStore(reg prometheus.Registerer, events *observers) (*backing, error) {
	if c.Redis == "" {
		return openMemory(reg)
	}
	return c.openRedis(reg, events)
}

func openMemory(reg prometheus.Registerer) (*backing, error) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		return nil, err
	}
	telemetry.WatchMemory(reg, store.Stats)
	return &backing{store: store, memory: store.Stats, name: "memory of this process"}, nil
}

func (c *serveCmd) openRedis(reg prometheus.Registerer, events *observers) (*backing, error) {
	transitions := telemetry.NewTransitions(reg)
	breaker, err := failure.NewBreaker(failure.BreakerConfig{
		Failures: c.BreakerFailures, Quarantine: c.BreakerQuarantine, Budget: c.Budget,
		EarlyEnd: c.BreakerEarlyEndAfter, NoEarlyEnd: !c.BreakerEarlyEnd,
		OnTransition: func(t failure.Transition) {
			transitions.Observe(t)
			events.log.Moved(t)
		},
	})
	if err != nil {
		return nil, err
	}
	resolver, err := c.resolver()
	if err != nil {
		return nil, fmt.Errorf("--redis: %w", err)
	}
	hooks := telemetry.NewStore(reg).Hooks()
	hooks.Panicked = events.panicked
	store, err := redisstore.New(resolver, breaker, redisstore.Config{
		Lanes: c.RedisLanes, Budget: c.Budget, NoDenyCache: !c.DenyCache, Hooks: hooks,
	})
	if err != nil {
		return nil, err
	}
	telemetry.WatchStore(reg, store.Stats)
	telemetry.WatchBreaker(reg, breaker)
	return &backing{
		store: store, breaker: breaker, redis: store.Stats, name: "redis at " + resolver.String(),
		work: []func(context.Context){breaker.Run, store.Run},
	}, nil
}

func (c *serveCmd) resolver() (*redisstore.Standalone, error) {
	access, err := c.access()
	if err != nil {
		return nil, err
	}
	return redisstore.NewStandalone(c.Redis, access)
}
