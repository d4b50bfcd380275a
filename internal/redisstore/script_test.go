package redisstore_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

func loads(t testing.TB, c *redis.Client) string {
	t.Helper()
	info, err := c.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_script|load:"); ok {
			calls, _, _ := strings.Cut(rest, ",")
			return calls
		}
	}
	return "calls=0"
}

func TestStore_LostScriptIsLoadedOnceForAll(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	admin := server.Client()
	proxy := redistest.NewProxy(t, server.Network(), server.Addr())
	cfg := quick()
	cfg.Lanes, cfg.CheckInterval, cfg.MaxBatch = 3, time.Hour, 40
	r := run(t, at(t, "redis://"+proxy.Addr()), cfg).serving()
	r.health.reset()
	do(t, admin, "script", "flush")
	do(t, admin, "config", "resetstat")
	proxy.Delay(30 * time.Millisecond) // so that several lanes send before the first learns of it
	var calls []*failure.Call
	var submitting sync.Mutex
	var callers sync.WaitGroup
	for range 10 {
		callers.Go(func() {
			for range 20 {
				c := r.submit(charge("k", 1))
				submitting.Lock()
				calls = append(calls, c)
				submitting.Unlock()
			}
		})
	}
	callers.Wait()
	for _, c := range calls {
		if got := r.cause(c); got != failure.CauseNone {
			t.Fatalf("a call failed of %v", got)
		}
	}
	if got := loads(t, admin); got != "calls=1" {
		t.Errorf("SCRIPT LOAD: %s, want calls=1 (hooks: %v)", got, r.hooks.all())
	}
	for event := range r.health.all() {
		if event != "answered none" && event != "alive" {
			t.Errorf("a script that was brought back counted as %q", event)
		}
	}
	if left := r.take(charge("k", 0))[0].Remaining; left != 800 {
		t.Errorf("200 calls left %d of 1000 tokens", left)
	}
}

func TestStore_ScriptThatMayNotBeLoaded(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	admin := server.Client()
	cfg := user(server, "+evalsha", "+ping", "+role", "+time", "+get", "+set")
	t.Run("at start", func(t *testing.T) {
		r := run(t, standalone(t, server.URL(), cfg), quick())
		r.fails(failure.CauseNoScript)
		redistest.Eventually(t, "the breaker is told", func() bool { return r.health.count("failed noscript") > 0 })
	})
	t.Run("somebody else has loaded it", func(t *testing.T) {
		run(t, at(t, server.URL()), quick()).serving()
		run(t, standalone(t, server.URL(), cfg), quick()).serving().take(charge("k", 1))
	})
	t.Run("lost while running", func(t *testing.T) {
		r := run(t, standalone(t, server.URL(), cfg), quick()).serving()
		r.take(charge("k", 1))
		do(t, admin, "script", "flush")
		r.health.reset()
		if got := r.ask(); got != failure.CauseNoScript {
			t.Errorf("the call failed of %v, want noscript", got)
		}
		if got := r.health.count("answered noscript"); got != 1 {
			t.Errorf("one refused re-load is one failure, not %d: %v", got, r.health.all())
		}
		server.ACL("limiter", "+script|load")
		r.heals()
	})
}
