package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var endpoint = &limit.Endpoint{Domain: "test", ID: "test", FailMode: limit.FailClosed}

// hourly holds n tokens and refills too slowly for any test to see.
func hourly(n int64) limit.Limit {
	return limit.NewTokenBucket(n*limit.Micro, limit.Rate{Micro: limit.Micro, Period: 3600 * limit.Micro})
}

func charge(key string, cost int64) limit.Charge {
	return limit.Charge{Key: "rl:v1:{test}:" + key, Limit: hourly(1000), Cost: cost, Endpoint: endpoint}
}

// log is a Health that writes everything down.
type log struct {
	mu     sync.Mutex
	events map[string]int
	owed   int
	state  failure.State
	panics bool
	asks   func() // what an observer may do when it is told of a failure
}

func newLog() *log { return &log{events: map[string]int{}, state: failure.Closed, asks: func() {}} }

func (l *log) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events[fmt.Sprintf(format, args...)]++
}

func (l *log) count(event string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events[event]
}

func (l *log) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = map[string]int{}
}

func (l *log) all() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]int{}
	for k, v := range l.events {
		out[k] = v
	}
	return out
}

func (l *log) owes(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owed += n
	return l.owed
}

func (l *log) set(s failure.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
}

func (l *log) explode(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.panics = on
}

func (l *log) Sent() failure.Trip { l.owes(1); return failure.Trip{} }

func (l *log) Answered(_ failure.Trip, c failure.Cause) {
	l.mu.Lock()
	explode := l.panics
	l.panics = false
	l.mu.Unlock()
	if explode {
		panic("the test's own bug")
	}
	l.owes(-1)
	l.note("answered %v", c)
}
func (l *log) Alive(failure.Trip)     { l.owes(-1); l.note("alive") }
func (l *log) Failed(c failure.Cause) { l.note("failed %v", c); l.asks() }
func (l *log) Proved()                { l.note("proved") }
func (l *log) Moved()                 { l.note("moved") }
func (l *log) State() failure.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// rig is a running store and what it reports.
type rig struct {
	*redisstore.Store
	t      testing.TB
	health *log
	stop   func() // ends Run and waits for it
	hooks  *log   // counts what the hooks were told
}

// quick makes everything that waits wait less.
func quick() redisstore.Config {
	return redisstore.Config{
		BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond,
		SocketTimeout: 2 * time.Second,
		CheckInterval: 50 * time.Millisecond, ProofInterval: 20 * time.Millisecond,
		Budget: 2 * time.Second, // proofs must not fail on a machine that is busy with other tests
	}
}

func run(t testing.TB, resolver redisstore.Resolver, cfg redisstore.Config) *rig {
	t.Helper()
	r := &rig{t: t, health: newLog(), hooks: newLog()}
	r.watch(&cfg.Hooks)
	s, err := redisstore.New(resolver, r.health, cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Store = s
	r.health.asks = func() { s.Stats() }
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	r.stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(r.stop)
	return r
}

func (r *rig) watch(h *redisstore.Hooks) {
	roundTrip := h.RoundTrip
	h.RoundTrip = func(took time.Duration, calls int, c failure.Cause) {
		r.hooks.note("batch of %d: %v", calls, c)
		if roundTrip != nil {
			roundTrip(took, calls, c)
		}
	}
	h.Dropped = func(c failure.Cause, n int) {
		for range n {
			r.hooks.note("dropped %v", c)
		}
	}
	h.Dialed = func(_ time.Duration, c failure.Cause) { r.hooks.note("dialed %v", c) }
	h.Reloaded = func(c failure.Cause) { r.hooks.note("reloaded %v", c) }
	h.Panicked = func(v any, _ []byte) { r.hooks.note("panicked %v", v) }
}

func standalone(t testing.TB, url string, access redisstore.Access) *redisstore.Standalone {
	t.Helper()
	s, err := redisstore.NewStandalone(url, access)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(t testing.TB, url string) *redisstore.Standalone {
	t.Helper()
	return standalone(t, url, redisstore.Access{})
}

// serving waits until every lane is connected.
func (r *rig) serving() *rig {
	r.t.Helper()
	defer func() {
		if r.t.Failed() {
			r.t.Logf("stats: %+v", r.Stats())
		}
	}()
	redistest.Eventually(r.t, "every lane serves", func() bool {
		s := r.Stats()
		return s.Connected == s.Lanes
	})
	return r
}

// submit hands a call to the store; its caller would wait for a long time.
func (r *rig) submit(charges ...limit.Charge) *failure.Call {
	c := failure.NewCall(charges, time.Now().Add(redistest.Patience))
	r.Submit(c)
	return c
}

// cause waits for c and returns what it failed of.
func (r *rig) cause(c *failure.Call) failure.Cause {
	r.t.Helper()
	timeout := time.NewTimer(redistest.Patience)
	defer timeout.Stop()
	select {
	case <-c.Done():
		return c.Cause()
	case <-timeout.C:
		r.t.Fatalf("a call was never completed; stats: %+v", r.Stats())
		return 0
	}
}

// ask makes one call and returns its cause.
func (r *rig) ask() failure.Cause {
	r.t.Helper()
	return r.cause(r.submit(charge("k", 1)))
}

// heals waits until calls succeed.
func (r *rig) heals() {
	r.t.Helper()
	redistest.Eventually(r.t, "calls succeed again", func() bool { return r.ask() == failure.CauseNone })
}

// fails waits until calls fail of c.
func (r *rig) fails(c failure.Cause) {
	r.t.Helper()
	var last failure.Cause
	defer func() {
		if r.t.Failed() {
			r.t.Logf("calls end with %v; stats: %+v", last, r.Stats())
		}
	}()
	redistest.Eventually(r.t, "calls fail of "+c.String(), func() bool { last = r.ask(); return last == c })
}

func do(t testing.TB, c *redis.Client, args ...any) {
	t.Helper()
	if err := c.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

func (r *rig) take(charges ...limit.Charge) []limit.Result {
	r.t.Helper()
	c := r.submit(charges...)
	if got := r.cause(c); got != failure.CauseNone {
		r.t.Fatalf("a call failed of %v: %+v", got, r.Stats().LastError)
	}
	return c.Results
}
