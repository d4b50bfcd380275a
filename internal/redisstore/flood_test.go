package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// scriptCalls is how often the server was asked to decide.
func scriptCalls(t testing.TB, client *redis.Client) (calls int64) {
	t.Helper()
	info, err := client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(info, "cmdstat_evalsha:calls=")
	if !found {
		return 0
	}
	if _, err := fmt.Sscan(strings.SplitN(rest, ",", 2)[0], &calls); err != nil {
		t.Fatal(err)
	}
	return calls
}

// TestStore_FloodDoesNotReachRedis: one tenant sends far more than it may. Others are decided as ever.
func TestStore_FloodDoesNotReachRedis(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	client := server.Client()
	cfg := quick()
	cfg.CheckInterval = time.Hour
	const flood, capacity = 5000, 7
	flooding := charge("flooding", 1)
	flooding.Limit = hourly(capacity)
	send := func(r *rig) (admitted int, asked int64, took time.Duration) {
		before, start := scriptCalls(t, client), time.Now()
		for range flood {
			if result := r.take(flooding)[0]; result.Allowed {
				admitted++
			} else if result.RetryAfter <= 0 || result.Remaining != 0 {
				t.Fatalf("denied with %+v", result)
			}
		}
		return admitted, scriptCalls(t, client) - before, time.Since(start)
	}
	r := run(t, at(t, server.URL()), cfg).serving()
	admitted, asked, took := send(r)
	most := capacity + 2 + int64(took/redisstore.DenialLife)
	if got := r.Stats().DenyCache; admitted != capacity || asked > most || got.Hits != uint64(flood-asked) || got.Kept == 0 {
		t.Errorf("%d of %d admitted, Redis asked %d times, want at most %d: %+v", admitted, flood, asked, most, got)
	}
	if neighbour := charge("neighbour", 1); !r.take(neighbour)[0].Allowed {
		t.Error("a neighbour of the flood was denied")
	}
	do(t, client, "flushall")
	redistest.Eventually(t, "the reset is noticed", func() bool { return r.take(flooding)[0].Allowed })

	cfg.NoDenyCache = true
	r = run(t, at(t, server.URL()), cfg).serving()
	if _, asked, _ := send(r); asked != flood || r.Stats().DenyCache != (redisstore.DenyCacheStats{}) {
		t.Errorf("without the cache Redis was asked %d times, want %d: %+v", asked, flood, r.Stats().DenyCache)
	}
}

// TestStore_ConcurrentFlood has every lane and many callers meet in one bucket, beside requests for two.
func TestStore_ConcurrentFlood(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	r := run(t, at(t, server.URL()), quick()).serving()
	one, other := charge("one", 1), charge("other", 1)
	one.Limit, other.Limit = hourly(100), hourly(1_000_000)
	var both, alone atomic.Int64
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for range 200 {
				if r.take(one)[0].Allowed {
					alone.Add(1)
				}
				if got := r.take(one, other); got[0].Allowed {
					both.Add(1)
				} else if !got[1].Allowed || got[1].Remaining < 1_000_000-100 {
					t.Errorf("the other bucket says %+v", got[1])
				}
			}
		})
	}
	callers.Wait()
	if got := both.Load() + alone.Load(); got != 100 {
		t.Errorf("%d admitted by a bucket of 100", got)
	}
	if got := 1_000_000 - r.take(other)[0].Remaining - 1; got != both.Load() {
		t.Errorf("the other bucket was charged %d times, %d requests for both were admitted", got, both.Load())
	}
	if r.Stats().DenyCache.Hits == 0 {
		t.Error("nothing was answered from the cache: this test tests nothing")
	}
}

// denying is a fake that denies everything for an hour until it is told otherwise, and a store that knows of one denial.
type denying struct {
	*rig
	fake  *redistest.Fake
	asked atomic.Int64
	ch    limit.Charge
}

func newDenying(t *testing.T, cfg redisstore.Config) *denying {
	d := &denying{ch: charge("denied", 1)}
	d.ch.Limit = limit.NewSlidingWindow(1, time.Hour)
	d.fake = redistest.NewFake(t, redistest.Healthy(func([]string) string {
		d.asked.Add(1)
		return redistest.Decided(0, 0, 3600e6, 7200e6)
	}))
	cfg.CheckInterval = time.Hour
	d.rig = run(t, at(t, d.fake.URL()), cfg).serving()
	return d
}

// known makes sure that the cache has just been told of the denial.
func (d *denying) known() {
	d.t.Helper()
	redistest.Eventually(d.t, "a denial is answered from the cache", func() bool {
		hits := d.Stats().DenyCache.Hits
		d.take(d.ch)
		return d.Stats().DenyCache.Hits > hits
	})
}

// reaches tells whether the next request for the denied bucket asks the server.
func (d *denying) reaches() bool {
	d.t.Helper()
	before := d.asked.Load()
	d.take(d.ch)
	return d.asked.Load() > before
}

// TestStore_BreakerHasTheCacheAside: a request that is let through to find out whether the store works asks the store.
func TestStore_BreakerHasTheCacheAside(t *testing.T) {
	d := newDenying(t, quick())
	for _, state := range []failure.State{failure.HalfOpen, failure.Open} {
		d.known()
		d.health.set(state)
		if !d.reaches() {
			t.Errorf("a request of a breaker that is %v was answered from the cache", state)
		}
		d.health.set(failure.Closed)
	}
}

// TestStore_FailureEmptiesTheCache: from the first failed round trip on, fail modes decide until the store answers.
func TestStore_FailureEmptiesTheCache(t *testing.T) {
	d := newDenying(t, quick())
	denies := func(args []string) string { d.asked.Add(1); return redistest.Decided(0, 0, 3600e6, 7200e6) }
	for trouble, want := range map[string]failure.Cause{
		"-OOM command not allowed\r\n": failure.CauseOOM, "$1\r\nx\r\n": failure.CauseProtocol,
	} {
		d.known()
		d.fake.Say(redistest.Healthy(func([]string) string { return trouble }))
		if got := d.cause(d.submit(charge("other", 1))); got != want {
			t.Errorf("%q: the call ended with %v, want %v", trouble, got, want)
		}
		if got := d.cause(d.submit(d.ch)); got != want {
			t.Errorf("%q: a call for the denied bucket ended with %v, want %v", trouble, got, want)
		}
		d.fake.Say(redistest.Healthy(denies))
		d.serving()
	}
}

// TestStore_CountsFromTheQuestion: the wait that a late reply names began before it was sent.
func TestStore_CountsFromTheQuestion(t *testing.T) {
	d := newDenying(t, quick())
	const wait = 20 * time.Millisecond
	sent, over := make(chan time.Time), make(chan struct{})
	d.fake.Say(redistest.Healthy(func([]string) string {
		sent <- time.Now()
		<-over
		return redistest.Decided(0, 0, wait.Microseconds(), 7200e6)
	}))
	call := d.submit(d.ch)
	start := <-sent
	redistest.Eventually(t, "the wait is over", func() bool { return time.Since(start) > wait })
	close(over)
	if got := d.cause(call); got != failure.CauseNone {
		t.Errorf("the call failed of %v", got)
	}
	if got := d.Stats().DenyCache; got.Kept != 0 {
		t.Errorf("a denial that was over when its reply came was kept: %+v", got)
	}
}

// TestStore_NoConnectionNoCache: a store that cannot be asked does not answer, and a new one knows nothing yet.
func TestStore_NoConnectionNoCache(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	r := run(t, at(t, server.URL()), quick()).serving()
	ch := charge("denied", 1)
	ch.Limit = hourly(1)
	r.take(ch)
	redistest.Eventually(t, "a denial is answered from the cache", func() bool {
		return !r.take(ch)[0].Allowed && r.Stats().DenyCache.Hits > 0
	})
	server.Kill()
	redistest.Eventually(t, "no lane is left", func() bool { return r.Stats().Connected == 0 })
	if got := r.cause(r.submit(ch)); got == failure.CauseNone {
		t.Error("a store without a connection answered")
	}
	server.Restart()
	r.serving()
	if !r.take(ch)[0].Allowed {
		t.Error("an empty server was not asked")
	}
}

// TestStore_FullQueueStillDenies: overload is no outage; what is known needs no room.
func TestStore_FullQueueStillDenies(t *testing.T) {
	cfg := quick()
	cfg.Lanes, cfg.QueueSize, cfg.SocketTimeout = 1, 1, redistest.Patience
	d := newDenying(t, cfg)
	hanging := make(chan struct{})
	d.known()
	d.fake.Say(redistest.Healthy(func([]string) string {
		<-hanging
		return redistest.Decided(1, 9, 0, 1000)
	}))
	waiting := []*failure.Call{d.submit(charge("a", 1))}
	redistest.Eventually(t, "the lane hangs", func() bool { return d.Stats().InFlight == 1 })
	waiting = append(waiting, d.submit(charge("b", 1)))
	if got := d.cause(d.submit(charge("c", 1))); got != failure.CauseQueueFull {
		t.Errorf("a call beyond the queue ended with %v", got)
	}
	if d.Stats().DenyCache.Entries == 1 { // the machine was not so slow that the denial ended
		if got := d.cause(d.submit(d.ch)); got != failure.CauseNone && d.Stats().DenyCache.Entries == 1 {
			t.Errorf("a call that is known to be denied ended with %v", got)
		}
	}
	close(hanging)
	for _, c := range waiting {
		if got := d.cause(c); got != failure.CauseNone {
			t.Errorf("a queued call ended with %v", got)
		}
	}
}
