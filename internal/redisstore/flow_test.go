package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// TestStore_BatchesWhatHasGathered holds the only lane's answer back while more calls come.
func TestStore_BatchesWhatHasGathered(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	proxy := redistest.NewProxy(t, server.Network(), server.Addr())
	cfg := quick()
	cfg.Lanes, cfg.MaxBatch, cfg.CheckInterval, cfg.SocketTimeout = 1, 30, time.Hour, redistest.Patience
	r := run(t, at(t, "redis://"+proxy.Addr()), cfg).serving()
	proxy.Delay(redistest.Patience)
	calls := []*failure.Call{r.submit(charge("k", 1))}
	redistest.Eventually(t, "the first call is sent", func() bool { return r.Stats().InFlight == 1 })
	for range 50 {
		calls = append(calls, r.submit(charge("k", 1)))
	}
	if got := r.Stats(); got.Queued != 50 || got.InFlight != 1 {
		t.Errorf("%d queued, %d in flight; want 50, 1", got.Queued, got.InFlight)
	}
	proxy.Heal()
	for _, c := range calls {
		if got := r.cause(c); got != failure.CauseNone {
			t.Errorf("a call failed of %v", got)
		}
	}
	want := map[string]int{"dialed none": 1, "batch of 1: none": 1, "batch of 30: none": 1, "batch of 20: none": 1}
	if diff := cmp.Diff(want, r.hooks.all()); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	if got := r.health.count("answered none"); got != 3 {
		t.Errorf("%d pieces of evidence for 3 round trips of 51 calls", got)
	}
}

func TestStore_FullQueue(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	proxy := redistest.NewProxy(t, server.Network(), server.Addr())
	cfg := quick()
	cfg.Lanes, cfg.QueueSize, cfg.CheckInterval, cfg.SocketTimeout = 1, 3, time.Hour, redistest.Patience
	r := run(t, at(t, "redis://"+proxy.Addr()), cfg).serving()
	proxy.Delay(redistest.Patience)
	calls := []*failure.Call{r.submit(charge("k", 1))}
	redistest.Eventually(t, "the first call is sent", func() bool { return r.Stats().InFlight == 1 })
	for range 3 {
		calls = append(calls, r.submit(charge("k", 1)))
	}
	if got := r.ask(); got != failure.CauseQueueFull {
		t.Errorf("a call beyond the queue failed of %v", got)
	}
	proxy.Heal()
	for _, c := range calls {
		if got := r.cause(c); got != failure.CauseNone {
			t.Errorf("a queued call failed of %v", got)
		}
	}
	if r.hooks.count("dropped queue_full") != 1 || r.health.count("answered none") != 2 || len(r.health.all()) != 2 {
		t.Errorf("hooks: %v, evidence: %v", r.hooks.all(), r.health.all())
	}
}

// TestStore_LateCallsAreNotSent: what waited too long would charge for nobody.
func TestStore_LateCallsAreNotSent(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	r := run(t, at(t, server.URL()), quick()).serving()
	late := failure.NewCall([]limit.Charge{charge("late", 1)}, time.Now())
	r.Submit(late)
	if got := r.cause(late); got != failure.CauseDropped {
		t.Errorf("a late call ended with %v, want dropped", got)
	}
	if n := server.Client().Exists(t.Context(), charge("late", 1).Key).Val(); n != 0 {
		t.Error("a dropped call was charged")
	}
	if r.hooks.count("dropped dropped") != 1 || r.health.count("answered none") != 0 {
		t.Errorf("hooks: %v, evidence: %v", r.hooks.all(), r.health.all())
	}
}

func TestStore_PanicCostsOneBatch(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	r := run(t, at(t, server.URL()), quick()).serving()
	r.health.explode(true)
	if got := r.ask(); got != failure.CauseOther {
		t.Errorf("the call at hand ended with %v", got)
	}
	r.serving().take(charge("k", 1))
	if r.hooks.count("panicked the test's own bug") != 1 {
		t.Errorf("hooks: %v", r.hooks.all())
	}
	if got := r.health.owes(0); got != 0 {
		t.Errorf("%d round trips are owed after a panic", got)
	}
}

// exploding is a resolver with a bug.
type exploding struct {
	redisstore.Resolver
	left *int
}

func (e exploding) Resolve(ctx context.Context) (redisstore.Target, error) {
	if *e.left--; *e.left >= 0 {
		panic("the resolver's bug")
	}
	return e.Resolver.Resolve(ctx)
}

func TestStore_PanicWhileConnecting(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	cfg := quick()
	cfg.Lanes = 1
	left := 3
	r := run(t, exploding{at(t, server.URL()), &left}, cfg).serving()
	r.take(charge("k", 1))
	if got := r.hooks.count("panicked the resolver's bug"); got != 3 {
		t.Errorf("hooks: %v", r.hooks.all())
	}
}

func TestStore_Close(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	proxy := redistest.NewProxy(t, server.Network(), server.Addr())
	running := goleak.IgnoreCurrent()
	cfg := quick()
	cfg.Lanes, cfg.CheckInterval = 1, time.Hour
	r := run(t, at(t, "redis://"+proxy.Addr()), cfg).serving()
	proxy.Delay(20 * time.Millisecond)
	inFlight := r.submit(charge("k", 1))
	redistest.Eventually(t, "the first call is sent", func() bool { return r.Stats().InFlight == 1 })
	queued := r.submit(charge("k", 1))
	r.stop()
	if got := r.cause(inFlight); got != failure.CauseNone {
		t.Errorf("what was in flight failed of %v", got)
	}
	if got := r.cause(queued); got != failure.CauseClosed {
		t.Errorf("what was queued ended with %v, want closed", got)
	}
	if got := r.ask(); got != failure.CauseClosed {
		t.Errorf("a call after the end failed of %v, want closed", got)
	}
	redistest.Eventually(t, "the connections are gone", func() bool { return proxy.Conns() == 0 })
	goleak.VerifyNone(t, running)
}

// TestStore_CloseWithoutConnection: what waits for the first connection, or met a dead server, is let go too.
func TestStore_CloseWithoutConnection(t *testing.T) {
	fake := redistest.NewFake(t, func([]string) string { return "" })
	cfg := quick()
	cfg.SocketTimeout = 100 * time.Millisecond
	r := run(t, at(t, fake.URL()), cfg)
	waiting := r.submit(charge("k", 1))
	r.stop()
	if got := r.cause(waiting); got != failure.CauseClosed && got != failure.CauseIOTimeout {
		t.Errorf("what waited for the first connection ended with %v", got)
	}
	if got := r.ask(); got != failure.CauseClosed {
		t.Errorf("a call after the end failed of %v, want closed", got)
	}
}
