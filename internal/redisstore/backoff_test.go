package redisstore_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
)

func TestBackoff_DoublesUpToItsMaximum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := redisstore.NewBackoff(50*time.Millisecond, time.Second)
		if d := b.Reserve("a"); d != 0 {
			t.Errorf("the first dial waits for %v", time.Duration(d))
		}
		for i, most := range []time.Duration{50, 100, 200, 400, 800, 1000, 1000, 1000} {
			most *= time.Millisecond
			redisstore.Failed(b, "a")
			if d := time.Duration(b.Reserve("a")); d < most/2 || d > most {
				t.Errorf("failure %d: the next dial waits for %v, want from %v to %v", i+1, d, most/2, most)
			}
			time.Sleep(time.Minute)
		}
		if d := b.Reserve("b"); d != 0 {
			t.Errorf("another address waits for %v", time.Duration(d))
		}
	})
}

// TestBackoff_SpacesTheLanes: lanes that wait for the same address do not dial at once.
func TestBackoff_SpacesTheLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := redisstore.NewBackoff(100*time.Millisecond, time.Second)
		redisstore.Failed(b, "a")
		last := time.Duration(b.Reserve("a"))
		for range 3 {
			next := time.Duration(b.Reserve("a"))
			if next-last < 50*time.Millisecond {
				t.Errorf("two lanes dial within %v", next-last)
			}
			last = next
		}
	})
}

func TestBackoff_SuccessWakesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := redisstore.NewBackoff(time.Hour, time.Hour)
		redisstore.Failed(b, "a")
		start := time.Now()
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if err := redisstore.Wait(b, context.Background(), "a"); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Second)
		redisstore.Connected(b, "a")
		waiting.Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("the other lane waited for %v, want 1s", took)
		}
	})
}

func TestBackoff_StopsWaitingWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := redisstore.NewBackoff(time.Hour, time.Hour)
		redisstore.Failed(b, "a")
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := redisstore.Wait(b, ctx, "a"); err == nil {
			t.Error("wait returned without an error")
		}
	})
}

// TestBackoff_ShortLivedConnections: a connection that breaks at once is dialed ever more slowly, one that lived is
// forgiven.
func TestBackoff_ShortLivedConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := redisstore.NewBackoff(100*time.Millisecond, time.Second)
		for range 4 {
			redisstore.Connected(b, "a")
			redisstore.Lost(b, "a", 10*time.Millisecond)
		}
		if d := time.Duration(b.Reserve("a")); d < 400*time.Millisecond {
			t.Errorf("after four short lives the next dial waits for %v, want at least 400ms", d)
		}
		redisstore.Connected(b, "a")
		redisstore.Lost(b, "a", time.Minute)
		if d := time.Duration(b.Reserve("a")); d != 0 {
			t.Errorf("after a long life the next dial waits for %v", d)
		}
	})
}
