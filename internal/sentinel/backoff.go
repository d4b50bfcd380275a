package sentinel

import (
	"context"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
)

// backoff spaces the attempts at one Sentinel.
type backoff struct {
	least, most time.Duration
	next        time.Duration
}

// pause is how long to wait after another failure in a row.
func (b *backoff) pause() time.Duration {
	d := max(b.next, b.least)
	b.next = min(2*d, b.most)
	return redisstore.Jitter(d)
}

// succeeded forgets the failures.
func (b *backoff) succeeded() { b.next = 0 }

// sleep waits for d; false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
