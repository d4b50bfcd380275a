package redisstore_test

import (
	"sync"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// TestStore_FrozenServer checks that nobody waits on a frozen server but the lanes, and that its thaw is noticed.
func TestStore_FrozenServer(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	cfg := quick()
	cfg.SocketTimeout = 100 * time.Millisecond
	r := run(t, at(t, server.URL()), cfg).serving()
	server.Freeze()
	var calls []*failure.Call
	start := time.Now()
	for range 2000 {
		calls = append(calls, r.submit(charge("k", 1)))
	}
	// They take about 2 ms. If each tenth one waited for the socket it would be 20 s.
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("submitting 2000 calls to a frozen server took %v", took)
	}
	for _, c := range calls {
		if got := r.cause(c); got.Outcome() != failure.Timeout {
			t.Fatalf("a call ended in %v", got)
		}
	}
	if got := r.health.count("answered io_timeout"); got == 0 || got > 2 {
		t.Errorf("%d round trips timed out on 2 lanes: %v", got, r.health.all())
	}
	server.Thaw()
	r.heals()
	r.serving()
	if got := r.health.owes(0); got != 0 {
		t.Errorf("%d round trips were begun and never ended", got)
	}
}

func TestStore_KilledAndRestartedServer(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	r := run(t, at(t, server.URL()), quick()).serving()
	server.Kill()
	r.fails(failure.CauseDial)
	if got := r.Stats(); got.Connected != 0 || got.LastError.Cause != failure.CauseDial {
		t.Errorf("Stats() = %+v, want no connection and a dial error", got)
	}
	server.Restart()
	r.heals()
}

func TestStore_StartsWithoutServer(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	server.Kill()
	r := run(t, at(t, server.URL()), quick())
	r.fails(failure.CauseDial)
	if got := r.health.count("failed dial"); got == 0 {
		t.Error("the health was not told of a failed dial")
	}
	server.Restart()
	r.heals()
	if got := r.health.count("proved"); got == 0 {
		t.Error("the health was not told that a connection proved the store")
	}
}

// TestStore_FirstConnectionIsWaitedFor: calls that come while the first connection is being made are not failed.
func TestStore_FirstConnectionIsWaitedFor(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	server.Freeze()
	cfg := quick()
	cfg.SocketTimeout = redistest.Patience
	r := run(t, at(t, server.URL()), cfg)
	c := r.submit(charge("k", 1))
	redistest.Eventually(t, "a dial is under way", func() bool { return r.Stats().Address != "" })
	select {
	case <-c.Done():
		t.Errorf("the call did not wait for the first connection: %v", c.Cause())
	default:
	}
	server.Thaw()
	if got := r.cause(c); got != failure.CauseNone {
		t.Errorf("the call failed of %v", got)
	}
}

func TestStore_LoadingServerIsNotServed(t *testing.T) {
	fake := redistest.NewFake(t, func(args []string) string {
		if args[0] == "hello" {
			return "*0\r\n"
		}
		return "-LOADING Redis is loading the dataset in memory\r\n"
	})
	r := run(t, at(t, fake.URL()), quick())
	r.fails(failure.CauseLoading)
}

func TestStore_SilentTLSServer(t *testing.T) {
	fake := redistest.NewFake(t, func([]string) string { return "" })
	cfg := quick()
	cfg.DialTimeout = 20 * time.Millisecond
	r := run(t, at(t, "rediss://"+fake.Addr()), cfg)
	r.fails(failure.CauseDial)
}

// TestStore_SlowServer: a store that always answers, but later than the budget, proves nothing and serves nobody.
func TestStore_SlowServer(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	proxy := redistest.NewProxy(t, server.Network(), server.Addr())
	cfg := quick()
	cfg.Budget, cfg.SocketTimeout = 20*time.Millisecond, redistest.Patience
	slow := map[string]func(){
		"delayed":  func() { proxy.Delay(30 * time.Millisecond) },
		"dripping": func() { proxy.Drip(6 * time.Millisecond) },
	}
	for name, worsen := range slow {
		t.Run(name, func(t *testing.T) {
			worsen()
			defer proxy.Heal()
			r := run(t, at(t, "redis://"+proxy.Addr()), cfg)
			r.fails(failure.CauseDeadline)
			proxy.Heal()
			r.heals()
		})
	}
}

// TestStore_HalfOpenConnection: the peer is gone without a word, and no request has to find that out.
func TestStore_HalfOpenConnection(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	proxy := redistest.NewProxy(t, server.Network(), server.Addr())
	cfg := quick()
	cfg.SocketTimeout = 50 * time.Millisecond
	r := run(t, at(t, "redis://"+proxy.Addr()), cfg).serving()
	proxy.Blackhole()
	redistest.Eventually(t, "both lanes have noticed", func() bool { return r.Stats().Connected == 0 })
	if got := r.health.count("answered io_timeout"); got != 2 {
		t.Errorf("evidence: %v, want two checks without an answer", r.health.all())
	}
	proxy.Heal()
	proxy.Cut()
	r.serving().take(charge("k", 1))
}

// TestStore_StuckLaneIsAvoided: one lane hangs; the other one serves everybody.
func TestStore_StuckLaneIsAvoided(t *testing.T) {
	hangs, stuck := make(chan struct{}), make(chan struct{})
	var once sync.Once
	fake := redistest.NewFake(t, redistest.Healthy(func([]string) string {
		first := false
		once.Do(func() { first = true })
		if first {
			close(hangs)
			<-stuck
		}
		return redistest.Decided(1, 9, 0, 1000)
	}))
	defer close(stuck)
	cfg := quick()
	cfg.CheckInterval, cfg.SocketTimeout = time.Hour, redistest.Patience
	r := run(t, at(t, fake.URL()), cfg).serving()
	hanging := r.submit(charge("k", 1))
	redistest.Eventually(t, "a lane hangs", func() bool { return r.Stats().InFlight == 1 })
	<-hangs // else the server might meet the next call first, and hang on that one
	for range 100 {
		r.take(charge("k", 1))
	}
	select {
	case <-hanging.Done():
		t.Error("the hanging call was answered: this test tests nothing")
	default:
	}
}

// TestStore_SilenceWhenIdleIsOwed: a frozen server is found out before the first request meets it.
func TestStore_SilenceWhenIdleIsOwed(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	cfg := quick()
	cfg.SocketTimeout = redistest.Patience
	r := run(t, at(t, server.URL()), cfg).serving()
	server.Freeze()
	redistest.Eventually(t, "both lanes owe the answer to a check", func() bool { return r.health.owes(0) == 2 })
	server.Thaw()
	redistest.Eventually(t, "nothing is owed", func() bool { return r.health.owes(0) == 0 })
}
