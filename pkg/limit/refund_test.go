package limit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

// pair is one bucket in two worlds: in one, some charges are made and taken back later; in the other they never are.
type pair struct {
	limit       limit.Limit
	made, never limit.State
	open        []tentative
}

// tentative is a charge that will be taken back.
type tentative struct{ cost, at int64 }

// charge makes a charge in both worlds, if the first one admits it.
func (p *pair) charge(now, cost int64) {
	s := p.limit.Advance(p.made, now)
	if p.limit.Wait(s, now, cost) != 0 {
		return
	}
	p.made = p.limit.Spend(s, cost)
	p.never = p.limit.Spend(p.limit.Advance(p.never, now), cost)
}

// try makes a charge that will be taken back.
func (p *pair) try(now, cost int64) {
	s, r := p.limit.Take(p.made, now, cost)
	if r.Allowed {
		p.made = s
		p.open = append(p.open, tentative{cost, now})
	}
}

// giveBack takes back the nth of the open charges.
func (p *pair) giveBack(now int64, n int) {
	t := p.open[n]
	p.open = append(p.open[:n], p.open[n+1:]...)
	p.made = p.limit.Refund(p.limit.Advance(p.made, now), now, t.cost, t.at)
}

// more tells whether a token bucket holds more than another.
func more(a, b limit.State) bool { return a.Level > b.Level || a.Level == b.Level && a.Rest > b.Rest }

func smallBucket(r *rand.Rand) limit.Limit {
	return limit.NewTokenBucket((1+r.Int64N(20))*limit.Micro+r.Int64N(limit.Micro),
		limit.Rate{Micro: 1 + r.Int64N(50*limit.Micro), Period: 1 + r.Int64N(3*limit.Micro)})
}

// TestLimit_RefundNeverOverfills mixes charges that stay, charges that are taken back and refills. However they
// interleave, a token bucket never holds more than if the ones taken back had never been.
func TestLimit_RefundNeverOverfills(t *testing.T) {
	refunds, missing := 0, 0
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 13))
		p := pair{limit: smallBucket(r)}
		now := int64(1e15)
		for range 60 {
			now += r.Int64N(1 + r.Int64N(1_000_000))
			cost := 1 + r.Int64N(p.limit.Tokens())
			switch r.IntN(4) {
			case 0:
				p.charge(now, cost)
			case 1:
				p.try(now, cost)
			default:
				if len(p.open) > 0 {
					p.giveBack(now, r.IntN(len(p.open)))
					refunds++
				}
			}
			made, never := p.limit.Advance(p.made, now), p.limit.Advance(p.never, now)
			if more(made, never) {
				t.Fatalf("seed %d: %+v holds %+v, without the charges taken back it would hold %+v", seed, p.limit, made, never)
			}
			if len(p.open) == 0 && more(never, made) {
				missing++
			}
		}
	}
	if refunds < 100_000 || missing == 0 {
		t.Errorf("%d refunds, %d times something was missing after them: the walks do not cover it", refunds, missing)
	}
}

// TestLimit_RefundRestoresTheBucket takes charges back that nothing else came between: the bucket holds what it did when
// it was charged, and one that was full is full.
func TestLimit_RefundRestoresTheBucket(t *testing.T) {
	full, others := 0, 0
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 14))
		p := pair{limit: smallBucket(r)}
		now := int64(1e15)
		p.charge(now, 1+r.Int64N(p.limit.Tokens()))
		now += r.Int64N(2_000_000)
		want := p.limit.Advance(p.never, now)
		p.try(now, 1+r.Int64N(p.limit.Tokens()))
		if len(p.open) == 0 {
			continue
		}
		now += r.Int64N(50_000)
		p.giveBack(now, 0)
		want.At = now
		if want.Level == p.limit.Capacity {
			full++
		} else {
			others++
		}
		if regained := p.limit.Advance(limit.State{At: now, Rest: want.Rest}, now+50_000); regained.Level > limit.Micro {
			continue // it may have regained more than it was charged
		}
		if diff := cmp.Diff(want, p.made); diff != "" {
			t.Fatalf("seed %d: %+v (-before +refunded):\n%s", seed, p.limit, diff)
		}
	}
	if full < 1000 || others < 1000 {
		t.Errorf("%d full buckets, %d others: too few", full, others)
	}
}

// TestLimit_RefundKeepsToItsWindow: a sliding window gives back in the window that was charged, and no other.
func TestLimit_RefundKeepsToItsWindow(t *testing.T) {
	const period, start = 1000, int64(1e15)
	l := limit.NewSlidingWindow(100, period*time.Microsecond)
	for name, c := range map[string]struct {
		charged, refunded int64 // after start
		want              limit.State
	}{
		"the same window":     {10, 990, limit.State{At: start, Level: 30}},
		"the last window":     {999, 1000, limit.State{At: start + period, Rest: 30}},
		"charged at its edge": {1000, 1999, limit.State{At: start + period, Rest: 30}},
		"the next window":     {1000, 2999, limit.State{At: start + 2*period}},
		"two windows later":   {999, 2000, limit.State{At: start + 2*period}},
		"the clock stepped":   {500, -500, limit.State{At: start - 500, Level: 30}},
	} {
		t.Run(name, func(t *testing.T) {
			p := pair{limit: l}
			p.charge(start, 30)
			p.try(start+c.charged, 12)
			p.giveBack(start+c.refunded, 0)
			if diff := cmp.Diff(c.want, p.made); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLimit_RefundNeverCancelsAnotherCharge: what is no longer counted cannot be given back.
func TestLimit_RefundNeverCancelsAnotherCharge(t *testing.T) {
	l := limit.NewSlidingWindow(100, time.Millisecond)
	s := limit.State{At: 1e15, Level: 7, Rest: 5}
	for _, c := range []struct{ at, level, rest int64 }{
		{1e15 + 1, 0, 5}, {1e15 - 1, 7, 0}, {1e15 - 1000, 7, 0}, {1e15 - 1001, 7, 5},
	} {
		want := limit.State{At: 1e15, Level: c.level, Rest: c.rest}
		if got := l.Refund(s, 1e15+500, 9, c.at); got != want {
			t.Errorf("9 charged at %d: %+v, want %+v", c.at, got, want)
		}
	}
}

// TestLimit_UnchargedReadsAsIfNothingHappened compares with what a bucket says that was only asked.
func TestLimit_UnchargedReadsAsIfNothingHappened(t *testing.T) {
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 15))
		l := smallBucket(r)
		if r.IntN(2) == 0 {
			l = limit.NewSlidingWindow(1+r.Int64N(20), time.Second)
		}
		now := int64(1e15)
		s, _ := l.Take(limit.State{}, now, r.Int64N(l.Tokens()+1))
		now += r.Int64N(3_000_000)
		cost := r.Int64N(l.Tokens() + 1)
		s = l.Advance(s, now)
		if l.Wait(s, now, cost) != 0 {
			continue
		}
		want := l.Report(s, now, 0)
		_, charged := l.Take(s, now, cost)
		got := l.Uncharged(cost, charged)
		near := cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() <= 2*time.Microsecond })
		if l.Algorithm == limit.SlidingWindow && s.Level+s.Rest > 0 {
			got.ResetAfter = want.ResetAfter // what else is counted does not show in a reply
		}
		if diff := cmp.Diff(want, got, near); diff != "" {
			t.Fatalf("seed %d: %+v charged %d (-asked +uncharged):\n%s", seed, l, cost, diff)
		}
	}
}
