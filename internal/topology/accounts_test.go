package topology_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/cluster"
	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/sentinel"
	"github.com/honestlimit/ratelimit/internal/topology"
	"github.com/honestlimit/ratelimit/internal/vitals"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// The accounts in deploy/redis are all that the service needs: nothing that it does is refused.
func TestAccounts_SufficeUnderSentinels(t *testing.T) {
	t.Parallel()
	s := redistest.Sentinel(t, topology.Config{Secrets: topology.NewSecrets()})
	seeds, err := redisstore.ParseSeeds(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := sentinel.New(sentinel.Config{
		Master: seeds.Master, Addresses: seeds.Addresses,
		Data: access(s.ServiceLogin()), Sentinels: access(s.SentinelLogin()),
	})
	if err != nil {
		t.Fatal(err)
	}
	breaker, err := failure.NewBreaker(failure.BreakerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := redisstore.New(watcher, breaker, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	runAll(t, watcher.Run, store.Run)
	await(t, "a decision", decides(store))
	await(t, "all that a watcher asks", func(context.Context) error {
		stats := watcher.Stats()
		if len(stats.Sentinels) != 3 {
			return fmt.Errorf("%d Sentinels are known, want 3", len(stats.Sentinels))
		}
		return nil
	})
	poll(t, s.Node("redis-0"), s.ServiceLogin())
	nothingRefused(t, s.Nodes())
}

func TestAccounts_SufficeInACluster(t *testing.T) {
	t.Parallel()
	s := redistest.Cluster(t, topology.Config{Secrets: topology.NewSecrets()})
	seeds, err := redisstore.ParseSeeds(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	store, err := cluster.New(cluster.Config{Addresses: seeds.Addresses, Access: access(s.ServiceLogin())})
	if err != nil {
		t.Fatal(err)
	}
	runAll(t, store.Run)
	await(t, "a decision", decides(store))
	// A slot on its way makes the service follow, and ask the new owner as somebody who was sent.
	from := owner(t, s, 0)
	m, err := s.BeginMigration(within(t), 0, from, owner(t, s, topology.Slots-1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.MoveKeys(within(t), 100); err != nil {
		t.Fatal(err)
	}
	await(t, "a decision by the new owner", decides(store))
	if store.Stats().Redirects.Ask == 0 {
		t.Error("the service was not sent on, so the case shows nothing")
	}
	if err := m.Finish(within(t)); err != nil {
		t.Fatal(err)
	}
	await(t, "a decision after the migration", decides(store))
	poll(t, from, s.ServiceLogin())
	nothingRefused(t, s.Nodes())
}

func TestAccounts_AreNarrow(t *testing.T) {
	t.Parallel()
	s := redistest.Sentinel(t, topology.Config{Secrets: topology.NewSecrets()})
	data, watch := s.Node("redis-0").Addr(), s.Node("sentinel-0").Addr()
	for name, c := range map[string]struct {
		addr    string
		login   topology.Login
		command []any
		want    string
	}{
		"nobody is let in at a data node":                       {data, topology.Login{}, []any{"ping"}, "NOAUTH"},
		"nobody is let in at a sentinel":                        {watch, topology.Login{}, []any{"ping"}, "NOAUTH"},
		"the default user is off":                               {data, topology.Login{Username: "default", Password: "x"}, []any{"ping"}, "WRONGPASS"},
		"the service's account of sentinels opens no data node": {data, s.SentinelLogin(), []any{"ping"}, "WRONGPASS"},
		"the service's account of data nodes opens no sentinel": {watch, s.ServiceLogin(), []any{"ping"}, "WRONGPASS"},
		"the service sees no other keys":                        {data, s.ServiceLogin(), []any{"get", "session:1"}, "NOPERM"},
		"the service cannot empty the store":                    {data, s.ServiceLogin(), []any{"flushall"}, "NOPERM"},
		"the service cannot configure":                          {data, s.ServiceLogin(), []any{"config", "get", "*"}, "NOPERM"},
		"the service starts no failover":                        {watch, s.SentinelLogin(), []any{"sentinel", "failover", topology.MasterName}, "NOPERM"},
	} {
		t.Run(name, func(t *testing.T) {
			err := client(t, c.addr, c.login).Do(within(t), c.command...).Err()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v = %v, want %s", c.command, err, c.want)
			}
		})
	}
}

// decides checks that the store admits a call.
func decides(store interface{ Submit(*failure.Call) }) func(context.Context) error {
	endpoint := &limit.Endpoint{Domain: "test", ID: "test", FailMode: limit.FailClosed}
	plenty := limit.NewTokenBucket(1e6*limit.Micro, limit.Rate{Micro: limit.Micro, Period: limit.Micro})
	return func(ctx context.Context) error {
		charges := []limit.Charge{{Key: "rl:v1:" + keyOf(0), Limit: plenty, Cost: 1, Endpoint: endpoint}}
		call := failure.NewCall(charges, time.Now().Add(time.Second))
		store.Submit(call)
		select {
		case <-call.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
		if cause := call.Cause(); cause != failure.CauseNone {
			return fmt.Errorf("it failed of %v", cause)
		}
		return nil
	}
}

// runAll runs what a test needs until the test ends.
func runAll(t *testing.T, work ...func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range work {
		running.Go(func() { run(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// nothingRefused checks that no node has refused anybody anything.
func nothingRefused(t *testing.T, nodes []*topology.Node) {
	t.Helper()
	for _, n := range nodes {
		refused, err := n.Client().Do(within(t), "acl", "log").Slice()
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range refused {
			t.Errorf("%s has refused: %v", n.Name(), entry)
		}
	}
}

// poll lets the service's optional look at its masters happen once.
func poll(t *testing.T, n *topology.Node, login topology.Login) {
	t.Helper()
	masters := func() []redisstore.Target { return []redisstore.Target{target(n.Addr(), login)} }
	poller, err := vitals.New(vitals.Config{Masters: masters, Interval: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	runAll(t, poller.Run)
	await(t, "a look at the master", func(context.Context) error {
		latest, failed := poller.Latest()
		if latest.At.IsZero() {
			return fmt.Errorf("%d failed", failed)
		}
		return nil
	})
}

func client(t *testing.T, addr string, login topology.Login) *redis.Client {
	t.Helper()
	c := redisstore.NewClient(target(addr, login), patience)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func target(addr string, login topology.Login) redisstore.Target {
	return redisstore.Target{
		Network: "tcp", Address: addr, Username: login.Username, Password: redisstore.Secret(login.Password),
	}
}

func access(l topology.Login) redisstore.Access {
	return redisstore.Access{Username: l.Username, Password: redisstore.Secret(l.Password)}
}
