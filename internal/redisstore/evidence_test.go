package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// TestStore_ProvesWhileOpen: an open breaker is told of proof again and again, but not by a store that is no master.
func TestStore_ProvesWhileOpen(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	cfg := quick()
	cfg.SocketTimeout = 100 * time.Millisecond
	r := run(t, at(t, server.URL()), cfg).serving()
	r.health.reset()
	r.take(charge("k", 1))
	if got := r.health.count("proved"); got != 0 {
		t.Errorf("proved %d times although the breaker is closed", got)
	}
	r.health.set(failure.Open)
	redistest.Eventually(t, "proof comes in", func() bool { return r.health.count("proved") >= 4 })
	server.Freeze()
	redistest.Eventually(t, "the lanes notice", func() bool { return r.Stats().Connected == 0 })
	r.health.reset()
	server.Thaw()
	redistest.Eventually(t, "new connections prove it", func() bool { return r.health.count("proved") >= 4 })
}

// TestStore_WithBreaker runs the real breaker through an outage.
func TestStore_WithBreaker(t *testing.T) {
	var mu sync.Mutex
	var moves []string
	breaker, err := failure.NewBreaker(failure.BreakerConfig{
		Quarantine: time.Hour, EarlyEnd: 10 * time.Millisecond, Budget: 2 * time.Second,
		OnTransition: func(m failure.Transition) {
			mu.Lock()
			defer mu.Unlock()
			moves = append(moves, fmt.Sprintf("%v to %v: %v", m.From, m.To, m.Trigger))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t, redistest.Config{})
	store, err := redisstore.New(at(t, server.URL()), breaker, quick())
	if err != nil {
		t.Fatal(err)
	}
	guard, err := failure.NewGuard(store, breaker, denyAll{}, failure.GuardConfig{Budget: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	running, cancel := context.WithCancel(t.Context())
	var goroutines sync.WaitGroup
	goroutines.Go(func() { store.Run(running) })
	goroutines.Go(func() { breaker.Run(running) })
	defer goroutines.Wait()
	defer cancel()
	decide := func() failure.Decision {
		return guard.Decide(t.Context(), []limit.Charge{charge("k", 1)}, make([]limit.Result, 1))
	}
	if d := decide(); !d.Allowed {
		t.Errorf("first decision: %+v", d)
	}
	server.Kill()
	redistest.Eventually(t, "the breaker is open", func() bool { return decide().Cause == failure.CauseBreakerOpen })
	server.Restart()
	redistest.Eventually(t, "the quarantine ends early", func() bool { return decide().Allowed })
	mu.Lock()
	defer mu.Unlock()
	want := []string{"closed to open: failures", "open to half_open: proof", "half_open to closed: success"}
	if diff := cmp.Diff(want, moves); diff != "" {
		t.Errorf("transitions (-want +got):\n%s", diff)
	}
}

type denyAll struct{}

func (denyAll) Take([]limit.Charge) (time.Duration, int, bool) { return 0, 0, false }
