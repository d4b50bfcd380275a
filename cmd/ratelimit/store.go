package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/honestlimit/ratelimit/internal/cluster"
	"github.com/honestlimit/ratelimit/internal/memstore"
	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/sentinel"
	"github.com/honestlimit/ratelimit/internal/telemetry"
	"github.com/honestlimit/ratelimit/internal/vitals"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// backing is the store and what belongs to it.
type backing struct {
	store     failure.Store
	breaker   *failure.Breaker        // nil for the embedded store, which cannot fail
	redis     func() redisstore.Stats // nil for the embedded store
	memory    func() memstore.Stats   // nil for Redis
	sentinels func() sentinel.Stats   // nil without Sentinels
	cluster   func() cluster.Stats    // nil without a Cluster, which has a breaker for each shard
	name      string                  // for people, without credentials
	work      []func(context.Context)
}

// openStore makes the store that the flags ask for. Nothing is connected before its work runs.
func (c *serveCmd) openStore(reg prometheus.Registerer, events *observers) (*backing, error) {
	if c.Redis == "" {
		return openMemory(reg)
	}
	if strings.HasPrefix(c.Redis, redisstore.Cluster.String()) {
		return c.openCluster(reg, events)
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

// openRedis makes a store that one server at a time decides for: the only one, or the one that Sentinels name.
func (c *serveCmd) openRedis(reg prometheus.Registerer, events *observers) (*backing, error) {
	b := &backing{}
	resolver, err := c.openResolver(reg, events, b)
	if err != nil {
		return nil, fmt.Errorf("--redis: %w", err)
	}
	if b.breaker, err = failure.NewBreaker(c.breakerConfig(reg, events)); err != nil {
		return nil, err
	}
	store, err := redisstore.New(resolver, b.breaker, c.storeConfig(reg, events))
	if err != nil {
		return nil, err
	}
	telemetry.WatchStore(reg, store.Stats)
	telemetry.WatchBreaker(reg, b.breaker)
	b.store, b.redis = store, store.Stats
	b.work = append(b.work, b.breaker.Run, store.Run)
	return b, c.pollInfo(reg, b, func() []redisstore.Target {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // who does not know the master at once is not waited for
		if target, err := resolver.Resolve(ctx); err == nil {
			return []redisstore.Target{target}
		}
		return nil
	})
}

// openCluster makes a store that several servers decide for, each with a breaker of its own.
func (c *serveCmd) openCluster(reg prometheus.Registerer, events *observers) (*backing, error) {
	seeds, err := redisstore.ParseSeeds(c.Redis)
	if err != nil {
		return nil, fmt.Errorf("--redis: %w", err)
	}
	access, err := c.access()
	if err != nil {
		return nil, err
	}
	nat, err := c.nat()
	if err != nil {
		return nil, err
	}
	access = seeds.Admit(access)
	store, err := cluster.New(cluster.Config{
		Addresses: seeds.Addresses, Access: access, NAT: nat,
		Store: c.storeConfig(reg, events), Breaker: c.breakerConfig(reg, events),
	})
	if err != nil {
		return nil, fmt.Errorf("--redis: %w", err)
	}
	telemetry.WatchCluster(reg, store.Stats)
	telemetry.WatchStore(reg, func() redisstore.Stats { return store.Stats().Store })
	b := &backing{
		store: store, cluster: store.Stats, name: "redis cluster of " + strings.Join(seeds.Addresses, ", "),
		work: []func(context.Context){store.Run},
	}
	return b, c.pollInfo(reg, b, store.Masters)
}

// openResolver makes what says where the master is, and names the store after it.
func (c *serveCmd) openResolver(
	reg prometheus.Registerer, events *observers, b *backing,
) (redisstore.Resolver, error) {
	access, err := c.access()
	if err != nil {
		return nil, err
	}
	if !redisstore.HasSeeds(c.Redis) {
		alone, err := redisstore.NewStandalone(c.Redis, access)
		if err == nil {
			b.name = "redis at " + alone.String()
		}
		return alone, err
	}
	watcher, err := c.openWatcher(reg, events, access)
	if err != nil {
		return nil, err
	}
	telemetry.WatchSentinels(reg, watcher.Stats)
	b.name, b.sentinels = "redis by "+watcher.String(), watcher.Stats
	b.work = append(b.work, watcher.Run)
	return watcher, nil
}

func (c *serveCmd) openWatcher(
	reg prometheus.Registerer, events *observers, access redisstore.Access,
) (*sentinel.Watcher, error) {
	seeds, err := redisstore.ParseSeeds(c.Redis)
	if err != nil {
		return nil, err
	}
	own, err := c.sentinelAccess()
	if err != nil {
		return nil, err
	}
	nat, err := c.nat()
	if err != nil {
		return nil, err
	}
	return sentinel.New(sentinel.Config{
		Master: seeds.Master, Addresses: seeds.Addresses, Data: seeds.Admit(access), Sentinels: own, NAT: nat, DB: seeds.DB,
		Hooks: telemetry.NewSentinelLog(events.logger).Hooks(telemetry.NewSentinelEvents(reg)),
	})
}

func (c *serveCmd) breakerConfig(reg prometheus.Registerer, events *observers) failure.BreakerConfig {
	transitions := telemetry.NewTransitions(reg)
	return failure.BreakerConfig{
		Failures: c.BreakerFailures, Quarantine: c.BreakerQuarantine, Budget: c.Budget,
		EarlyEnd: c.BreakerEarlyEndAfter, NoEarlyEnd: !c.BreakerEarlyEnd,
		OnTransition: func(t failure.Transition) {
			transitions.Observe(t)
			events.log.Moved(t)
		},
	}
}

func (c *serveCmd) storeConfig(reg prometheus.Registerer, events *observers) redisstore.Config {
	hooks := telemetry.NewStore(reg).Hooks()
	hooks.Panicked = events.panicked
	count := hooks.Moved
	hooks.Moved = func(from, to string) {
		count(from, to)
		events.log.MasterChanged(from, to)
	}
	return redisstore.Config{
		Lanes: c.RedisLanes, Budget: c.Budget, NoDenyCache: !c.DenyCache, Hooks: hooks,
	}
}

// pollInfo has the masters asked how they are, if the flags say so.
func (c *serveCmd) pollInfo(reg prometheus.Registerer, b *backing, masters func() []redisstore.Target) error {
	if c.RedisInfoInterval == 0 {
		return nil
	}
	poller, err := vitals.New(vitals.Config{Masters: masters, Interval: c.RedisInfoInterval})
	if err != nil {
		return err
	}
	telemetry.WatchVitals(reg, poller.Latest)
	b.work = append(b.work, poller.Run)
	return nil
}
