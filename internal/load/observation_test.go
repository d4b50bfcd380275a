package load_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/honestlimit/ratelimit/internal/load"
)

func TestRun_StopWaitsForWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := serve(t, func(ctx context.Context, r *request) (*response, error) {
			time.Sleep(100 * time.Millisecond)
			return ok(ctx, r)
		})
		stop := make(chan struct{})
		cfg.Rate, cfg.Duration, cfg.Stop = 100, time.Hour, stop
		time.AfterFunc(995*time.Millisecond, func() { close(stop) })
		report := runLoad(t, cfg)
		if len(s.arrived) != 100 || report.All.Admitted != 100 || report.All.Unanswered != 0 {
			t.Errorf("%d sent, %d admitted, %d unanswered, want 100, 100 and 0", len(s.arrived), report.All.Admitted,
				report.All.Unanswered)
		}
	})
}

func TestRun_TellsEveryAnswerToTheObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cfg := serve(t, func(ctx context.Context, r *request) (*response, error) {
			time.Sleep(3 * time.Millisecond)
			return ok(ctx, r)
		})
		var mu sync.Mutex
		var seen []load.Observation
		cfg.Rate, cfg.Duration, cfg.Warmup = 100, time.Second, 500*time.Millisecond
		cfg.OnAnswer = func(o load.Observation) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, o)
		}
		start := time.Now()
		runLoad(t, cfg)
		if len(seen) != 150 {
			t.Fatalf("%d answers were told, want 150 with the warm-up's", len(seen))
		}
		for i, o := range seen {
			due := start.Add(time.Duration(i) * 10 * time.Millisecond)
			if !o.Due.Equal(due) || !o.Sent.Equal(due) || !o.Answered.Equal(due.Add(3*time.Millisecond)) {
				t.Fatalf("answer %d = %+v, want due at %v and 3 ms", i, o, due)
			}
			if o.Answer != "OK" || o.Reason != "OK" {
				t.Fatalf("answer %d = %+v, want OK", i, o)
			}
		}
	})
}
