package emergency

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

// Amounts are counted in thousandths of a token: fine enough for every rate, and 64 bits last for centuries.
const milli = 1000

// bucket is a token bucket in one word. Where the rate has made x thousandths of a token since the start, the bucket
// lacks spent-x of them to be full; it is never more than full. Since x comes from the time as a whole, rounding
// never adds up.
type bucket struct {
	rate     limit.Rate
	capacity int64
	spent    atomic.Int64
}

func newBucket(rate limit.Rate) *bucket {
	b := &bucket{rate: rate}
	b.capacity = max(milli, b.made(time.Second.Microseconds()))
	return b
}

// made is the thousandths of a token that the rate makes in us microseconds.
func (b *bucket) made(us int64) int64 {
	hi, lo := bits.Mul64(uint64(us), uint64(b.rate.Micro))
	q, _ := bits.Div64(hi, lo, uint64(b.rate.Period)*milli)
	return int64(q)
}

// wait is how long cost must wait at now; 0 if it fits.
func (b *bucket) wait(now, cost int64) time.Duration {
	made := b.made(now)
	missing := max(b.spent.Load(), made) + b.amount(max(cost, 1)) - b.capacity
	if missing <= made {
		return 0
	}
	hi, lo := bits.Mul64(uint64(missing), uint64(b.rate.Period)*milli)
	lo, carry := bits.Add64(lo, uint64(b.rate.Micro)-1, 0)
	us, _ := bits.Div64(hi+carry, lo, uint64(b.rate.Micro))
	return time.Duration(int64(us)-now) * time.Microsecond
}

// spend takes cost if it fits, and writes nothing if it does not.
func (b *bucket) spend(now, cost int64) bool {
	made := b.made(now)
	for {
		old := b.spent.Load()
		want := max(old, made) + b.amount(max(cost, 1))
		if want-made > b.capacity {
			return false
		}
		if cost == 0 || b.spent.CompareAndSwap(old, want) {
			return true
		}
	}
}

func (b *bucket) refund(cost int64) {
	if cost > 0 {
		b.spent.Add(-b.amount(cost))
	}
}

// amount is cost in thousandths of a token, clamped to the capacity so that a dear request is not denied for ever.
func (b *bucket) amount(cost int64) int64 {
	if cost >= b.capacity/milli+1 {
		return b.capacity
	}
	return cost * milli
}
