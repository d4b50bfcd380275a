package redisstore

import (
	"math/bits"
	"time"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

// denialLife is the longest that a denial is believed without asking again. It bounds how late a change is noticed
// that this process does not see (a deleted key, another replica's limit, a clock of Redis that was set), and how far
// two clocks can drift apart meanwhile: at 500 ppm each and in opposite directions, one millisecond.
const denialLife = time.Second

// denial is what the store said of a bucket that denied. Time is that of the cache it is in. It is immutable.
//
// A bucket that nobody charges admits more as time passes, one that somebody charges less, so the cost that was denied
// stays denied until RetryAfter has passed. Time counts from before the question was sent, which is before the store
// looked at its clock: a denial errs towards ending early, by up to a round trip.
type denial struct {
	key   string
	limit limit.Limit
	epoch uint64        // of the cache
	sent  time.Duration // when the question was sent
	until time.Duration // when the denial ends

	state limit.State // token bucket: the bucket at sent

	cost int64        // sliding window: what was denied
	said limit.Result // sliding window: what was said at sent
}

// newDenial returns nil if r is no denial, or one of which cannot be told exactly what the store would say later.
func newDenial(ch *limit.Charge, r limit.Result, a asked) *denial {
	// What no waiting helps has no time to end at; what is at the end of time would not count down.
	if r.Allowed || r.RetryAfter <= 0 || r.ResetAfter <= 0 || max(r.RetryAfter, r.ResetAfter) >= limit.Forever {
		return nil
	}
	d := denial{key: ch.Key, limit: ch.Limit, epoch: a.epoch, sent: a.at, until: a.at + min(r.RetryAfter, denialLife)}
	cost := max(ch.Cost, 1) // 0 asks whether one would fit
	exact := false
	if ch.Limit.Algorithm == limit.TokenBucket {
		d.state, exact = fullest(ch.Limit, cost, r)
	} else {
		// How much remains depends on counts that the reply does not tell, unless it is as much as can be without
		// admitting the cost.
		d.cost, d.said, exact = cost, r, r.Remaining == cost-1
	}
	if !exact {
		return nil
	}
	return &d
}

// answer returns what the store would say at now to a charge of cost, false if that is not known or no denial.
func (d *denial) answer(now time.Duration, cost int64) (limit.Result, bool) {
	if now >= d.until {
		return limit.Result{}, false
	}
	passed := (now - d.sent).Truncate(time.Microsecond)
	if d.limit.Algorithm == limit.TokenBucket {
		_, r := d.limit.Take(d.state, d.state.At+passed.Microseconds(), cost)
		return r, !r.Allowed
	}
	r := d.said
	r.RetryAfter -= passed
	r.ResetAfter -= passed
	return r, max(cost, 1) == d.cost
}

// fullest returns the fullest token bucket of which the store would have said r when it denied cost; false if there is
// none. The true one holds at most what it regains in a microsecond less.
func fullest(l limit.Limit, cost int64, r limit.Result) (limit.State, bool) {
	s := below(l, cost*limit.Micro, r.RetryAfter)
	s = lesser(s, below(l, l.Capacity, r.ResetAfter))
	s = lesser(s, below(l, (r.Remaining+1)*limit.Micro, time.Microsecond))
	return s, s.Level >= 0 && l.Report(s, s.At, l.Wait(s, s.At, cost)) == r
}

// below returns the fullest token bucket that does not hold level microtokens a microsecond before wait is over. Its
// own time starts at 1. It holds a negative level if there is no such bucket.
func below(l limit.Limit, level int64, wait time.Duration) limit.State {
	// It lacks one unit, of 1/Period of a microtoken, more than it regains until then.
	hi, lo := bits.Mul64(uint64(wait.Microseconds()-1), uint64(l.Refill))
	lo, carry := bits.Add64(lo, 1, 0)
	hi += carry
	if hi >= uint64(l.Period) {
		return limit.State{At: 1, Level: -1}
	}
	lacking, units := bits.Div64(hi, lo, uint64(l.Period))
	s := limit.State{At: 1, Level: level - int64(lacking)}
	if units > 0 {
		s.Level--
		s.Rest = l.Period - int64(units)
	}
	return s
}

func lesser(a, b limit.State) limit.State {
	if b.Level < a.Level || b.Level == a.Level && b.Rest < a.Rest {
		return b
	}
	return a
}
