// Package emergency meters fail_open endpoints, per process, while the store is away.
//
// It knows no store, no breaker and no policy file: it is told which endpoints exist and admits requests against
// them. It is lock-free and allocates nothing on the request path. Specification: "Emergency / in-process limiting".
package emergency

import (
	"sync/atomic"
	"time"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

// unknownRetry is what a request for an endpoint without a bucket is told; it is answered again after a reload.
const unknownRetry = time.Second

type name struct{ domain, id string }

// Limiter holds one bucket for each endpoint. Capacity and refill are the endpoint's fallback rate, a burst of one
// second's worth, but at least one whole token: else a rate below one a second would admit nothing for ever.
//
// It runs on the local monotonic clock, and is safe for concurrent use.
type Limiter struct {
	start   time.Time
	buckets atomic.Pointer[map[name]*bucket]
}

// New returns a limiter that knows no endpoint, and so admits nothing.
func New() *Limiter {
	l := &Limiter{start: time.Now()}
	l.buckets.Store(&map[name]*bucket{})
	return l
}

// Configure replaces the set of endpoints; those that do not fail open, or whose fallback rate is not valid, get no
// bucket. The bucket of an endpoint whose rate is unchanged goes on as it is. It must not be called from two
// goroutines at once.
func (l *Limiter) Configure(endpoints []*limit.Endpoint) {
	old := *l.buckets.Load()
	buckets := make(map[name]*bucket, len(endpoints))
	for _, e := range endpoints {
		if e.FailMode != limit.FailOpen || e.Fallback.Validate() != nil {
			continue
		}
		n, rate := name{e.Domain, e.ID}, e.Fallback.Reduced()
		if b := old[n]; b != nil && b.rate == rate {
			buckets[n] = b
			continue
		}
		buckets[n] = newBucket(rate)
	}
	l.buckets.Store(&buckets)
}

// Take admits all charges, or none and says when it would, and which charge has to wait that long. A cost above an
// endpoint's capacity counts as the capacity. A cost of 0 asks whether one more would fit. An endpoint that was never
// configured has no meter, and so is denied.
func (l *Limiter) Take(charges []limit.Charge) (retryAfter time.Duration, denied int, ok bool) {
	buckets, now := *l.buckets.Load(), time.Since(l.start).Microseconds()
	if wait, i := longestWait(buckets, charges, now); wait > 0 {
		return wait, i, false
	}
	return pay(buckets, charges, now)
}

// pay takes all charges, which fitted a moment ago, and gives back what it took if one no longer does.
func pay(
	buckets map[name]*bucket, charges []limit.Charge, now int64,
) (retryAfter time.Duration, denied int, ok bool) {
	for i := range charges {
		b, cost, first := demand(buckets, charges, i)
		if !first || b.spend(now, cost) {
			continue
		}
		for j := range i {
			if paid, cost, first := demand(buckets, charges, j); first {
				paid.refund(cost)
			}
		}
		return max(b.wait(now, cost), time.Microsecond), i, false
	}
	return 0, 0, true
}

// longestWait returns how long all charges must wait, and which of them is to blame.
func longestWait(
	buckets map[name]*bucket, charges []limit.Charge, now int64,
) (longest time.Duration, denied int) {
	for i := range charges {
		b, cost, first := demand(buckets, charges, i)
		if !first {
			continue
		}
		if b == nil {
			return unknownRetry, i
		}
		if wait := b.wait(now, cost); wait > longest {
			longest, denied = wait, i
		}
	}
	return longest, denied
}

// demand returns the bucket that charge i draws on, nil if there is none, and what all charges together want of it;
// first is false, and the rest is empty, if an earlier charge has spoken for that bucket already.
func demand(buckets map[name]*bucket, charges []limit.Charge, i int) (b *bucket, cost int64, first bool) {
	e := charges[i].Endpoint
	for j := range i {
		if same(charges[j].Endpoint, e) {
			return nil, 0, false
		}
	}
	cost = charges[i].Cost
	for j := i + 1; j < len(charges); j++ {
		if same(charges[j].Endpoint, e) {
			cost += charges[j].Cost
		}
	}
	return buckets[name{e.Domain, e.ID}], cost, true
}

func same(a, b *limit.Endpoint) bool { return a == b || a.ID == b.ID && a.Domain == b.Domain }
