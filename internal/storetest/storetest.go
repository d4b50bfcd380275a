// Package storetest is the conformance suite that every failure.Store passes: what the numbers mean, what is atomic,
// what is never written. It knows no particular store.
package storetest

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// patience is how long the suite waits for what a store does in microseconds; only a broken store reaches it.
const patience = 20 * time.Second

// slack is how far a time may have moved between the decision and the look at it, on a very slow machine.
const slack = 30 * time.Second

const day = 24 * time.Hour

// Run runs the suite. newStore is called once a test; the store it returns is ready, and may share its buckets with
// the others, since every test uses keys of its own.
func Run(t *testing.T, newStore func(t *testing.T) failure.Store) {
	for _, c := range []struct {
		name string
		test func(*suite)
	}{
		{"numbers of a token bucket", (*suite).tokenBucketNumbers},
		{"numbers of a sliding window", (*suite).slidingWindowNumbers},
		{"several buckets are charged together or not at all", (*suite).severalBuckets},
		{"cost 0 asks without charging", (*suite).costZero},
		{"cost above the capacity is never admitted", (*suite).costAboveCapacity},
		{"a denied charge changes nothing", (*suite).deniedChangesNothing},
		{"distinct keys are independent", (*suite).distinctKeys},
		{"a token bucket refills", (*suite).refills},
		{"a sliding window slides", (*suite).slides},
		{"a changed limit keeps its bucket", (*suite).changedLimit},
		{"another algorithm starts anew", (*suite).changedAlgorithm},
		{"large numbers", (*suite).largeNumbers},
		{"many buckets in one request", (*suite).manyBuckets},
		{"concurrent requests never exceed the capacity", (*suite).concurrency},
		{"concurrent requests over crossed buckets", (*suite).crossedBuckets},
		{"a call without time left is completed", (*suite).noTimeLeft},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.test(&suite{T: t, store: newStore(t), prefix: fmt.Sprintf("rl:test:%d:", serial.Add(1))})
		})
	}
}

// serial makes the keys of each test its own.
var serial atomic.Int64

type suite struct {
	*testing.T
	store  failure.Store
	prefix string
}

// endpoint is what every charge of the suite is made for.
var endpoint = &limit.Endpoint{Domain: "test", ID: "suite", FailMode: limit.FailClosed}

func (s *suite) charge(key string, l limit.Limit, cost int64) limit.Charge {
	return limit.Charge{Key: s.prefix + key, Limit: l, Cost: cost, Endpoint: endpoint}
}

// take decides charges and returns their results.
func (s *suite) take(charges ...limit.Charge) []limit.Result {
	s.Helper()
	c := failure.NewCall(charges, time.Now().Add(patience))
	s.store.Submit(c)
	s.await(c)
	if c.Cause() != failure.CauseNone {
		s.Fatalf("the store failed: %v", c.Cause())
	}
	return c.Results
}

func (s *suite) await(c *failure.Call) {
	s.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-c.Done():
	case <-timeout.C:
		s.Fatalf("no answer after %v", patience)
	}
	select {
	case <-c.Done():
		s.Error("the call was completed twice")
	default:
	}
}

// want compares results up to the time that has passed since.
func (s *suite) want(got []limit.Result, want ...limit.Result) {
	s.Helper()
	near := cmp.Comparer(func(a, b time.Duration) bool { return a == b || a > 0 && b > 0 && (a-b).Abs() <= slack })
	if diff := cmp.Diff(want, got, near); diff != "" {
		s.Errorf("results differ (-want +got):\n%s", diff)
	}
}

func tokens(capacity int64, each time.Duration) limit.Limit {
	return limit.NewTokenBucket(capacity*limit.Micro, limit.Rate{Micro: limit.Micro, Period: each.Microseconds()})
}

func (s *suite) tokenBucketNumbers() {
	l := tokens(10, day)
	s.want(s.take(s.charge("k", l, 3)), limit.Result{Allowed: true, Remaining: 7, ResetAfter: 3 * day})
	s.want(s.take(s.charge("k", l, 7)), limit.Result{Allowed: true, ResetAfter: 10 * day})
	s.want(s.take(s.charge("k", l, 1)), limit.Result{RetryAfter: day, ResetAfter: 10 * day})
	s.want(s.take(s.charge("k", l, 4)), limit.Result{RetryAfter: 4 * day, ResetAfter: 10 * day})
}

func (s *suite) slidingWindowNumbers() {
	l := limit.NewSlidingWindow(10, day)
	s.want(s.take(s.charge("k", l, 3)), limit.Result{Allowed: true, Remaining: 7, ResetAfter: 2 * day})
	s.want(s.take(s.charge("k", l, 7)), limit.Result{Allowed: true, ResetAfter: 2 * day})
	// Of 10 in the last window nine tenths must still count, one tenth into the next.
	s.want(s.take(s.charge("k", l, 1)), limit.Result{RetryAfter: day + day/10, ResetAfter: 2 * day})
	s.want(s.take(s.charge("k", l, 10)), limit.Result{RetryAfter: 2 * day, ResetAfter: 2 * day})
}

func (s *suite) severalBuckets() {
	wide, narrow := tokens(10, day), limit.NewSlidingWindow(2, day)
	for range 2 {
		s.take(s.charge("wide", wide, 1), s.charge("narrow", narrow, 1))
	}
	denied := limit.Result{RetryAfter: day + day/2, ResetAfter: 2 * day}
	admits := limit.Result{Allowed: true, Remaining: 8, ResetAfter: 2 * day}
	fresh := limit.Result{Allowed: true, Remaining: 10}
	s.want(s.take(s.charge("wide", wide, 1), s.charge("narrow", narrow, 1)), admits, denied)
	s.want(s.take(s.charge("narrow", narrow, 1), s.charge("wide", wide, 1)), denied, admits)
	s.want(s.take(s.charge("new", wide, 1), s.charge("narrow", narrow, 1)), fresh, denied)
	s.want(s.take(s.charge("wide", wide, 8), s.charge("new", wide, 10)),
		limit.Result{Allowed: true, ResetAfter: 10 * day}, limit.Result{Allowed: true, ResetAfter: 10 * day})
}

func (s *suite) costZero() {
	for _, l := range []limit.Limit{tokens(2, day), limit.NewSlidingWindow(2, day)} {
		key := l.Algorithm.String()
		for range 3 {
			s.want(s.take(s.charge(key, l, 0)), limit.Result{Allowed: true, Remaining: 2})
		}
		full := s.take(s.charge(key, l, 2))[0].ResetAfter
		got := s.take(s.charge(key, l, 0))
		wait := day
		if l.Algorithm == limit.SlidingWindow {
			wait = day + day/2
		}
		s.want(got, limit.Result{RetryAfter: wait, ResetAfter: full})
	}
	l := tokens(2, day)
	s.want(s.take(s.charge("asked", l, 0), s.charge("charged", l, 1)),
		limit.Result{Allowed: true, Remaining: 2}, limit.Result{Allowed: true, Remaining: 1, ResetAfter: day})
}

func (s *suite) costAboveCapacity() {
	for _, l := range []limit.Limit{tokens(5, day), limit.NewSlidingWindow(5, day)} {
		key := l.Algorithm.String()
		never := limit.Result{Remaining: 5, RetryAfter: limit.Never}
		s.want(s.take(s.charge(key, l, 6)), never)
		s.want(s.take(s.charge(key, l, limit.MaxTokens)), never)
		if got := s.take(s.charge(key, l, 5)); !got[0].Allowed {
			s.Errorf("%v: after a cost that is too high, the whole capacity is denied", l.Algorithm)
		}
	}
}

func (s *suite) deniedChangesNothing() {
	for _, l := range []limit.Limit{tokens(10, day), limit.NewSlidingWindow(10, day)} {
		key := l.Algorithm.String()
		s.take(s.charge(key, l, 7))
		for range 5 {
			if got := s.take(s.charge(key, l, 4))[0]; got.Allowed || got.Remaining != 3 {
				s.Errorf("%v: cost 4 with 3 left: %+v", l.Algorithm, got)
			}
		}
		if got := s.take(s.charge(key, l, 3))[0]; !got.Allowed || got.Remaining != 0 {
			s.Errorf("%v: cost 3 with 3 left after denials: %+v", l.Algorithm, got)
		}
	}
}

func (s *suite) distinctKeys() {
	l := tokens(1, day)
	for i := range 20 {
		if got := s.take(s.charge(fmt.Sprint(i), l, 1))[0]; !got.Allowed {
			s.Errorf("key %d was charged for another", i)
		}
		if got := s.take(s.charge(fmt.Sprint(i), l, 1))[0]; got.Allowed {
			s.Errorf("key %d was not charged", i)
		}
	}
}

// refills polls: the bucket must deny before it admits again, and must say when that is.
func (s *suite) refills() {
	l := tokens(1, 100*time.Millisecond)
	start := time.Now()
	s.take(s.charge("k", l, 1))
	s.polls(func() bool {
		got := s.take(s.charge("k", l, 1))[0]
		if !got.Allowed && (got.RetryAfter <= 0 || got.RetryAfter > 100*time.Millisecond) {
			s.Errorf("denied with retry after %v, want at most 100ms", got.RetryAfter)
		}
		return got.Allowed
	})
	// 1 ms: the clocks of two processes need not agree to the microsecond on how long this took.
	if took := time.Since(start); took < 99*time.Millisecond {
		s.Errorf("a bucket of 1 per 100ms admitted the second after %v", took)
	}
}

func (s *suite) slides() {
	l := limit.NewSlidingWindow(4, 100*time.Millisecond)
	start := time.Now()
	s.take(s.charge("k", l, 4))
	s.polls(func() bool { return s.take(s.charge("k", l, 1))[0].Allowed })
	if took := time.Since(start); took < 99*time.Millisecond {
		s.Errorf("a full window of 100ms admitted one more after %v", took)
	}
	s.polls(func() bool { return s.take(s.charge("k", l, 0))[0].Remaining == 4 })
}

// polls asks until the answer is yes.
func (s *suite) polls(yes func() bool) {
	s.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for !yes() {
		select {
		case <-again.C:
		case <-timeout.C:
			s.Fatalf("not within %v", patience)
		}
	}
}

func (s *suite) changedLimit() {
	s.take(s.charge("tokens", tokens(10, day), 4))
	s.want(s.take(s.charge("tokens", tokens(20, day), 1)),
		limit.Result{Allowed: true, Remaining: 5, ResetAfter: 15 * day})
	s.want(s.take(s.charge("tokens", tokens(3, day), 1)), // what is above the new capacity is lost
		limit.Result{Allowed: true, Remaining: 2, ResetAfter: day})
	s.want(s.take(s.charge("tokens", tokens(3, 10*day), 0)),
		limit.Result{Allowed: true, Remaining: 2, ResetAfter: 10 * day})

	s.take(s.charge("window", limit.NewSlidingWindow(10, day), 4))
	s.want(s.take(s.charge("window", limit.NewSlidingWindow(20, day), 1)),
		limit.Result{Allowed: true, Remaining: 15, ResetAfter: 2 * day})
	s.want(s.take(s.charge("window", limit.NewSlidingWindow(3, 2*day), 0)),
		limit.Result{RetryAfter: 2*day + 2*day*3/5, ResetAfter: 4 * day})
}

func (s *suite) changedAlgorithm() {
	s.take(s.charge("k", tokens(5, day), 5))
	s.want(s.take(s.charge("k", limit.NewSlidingWindow(5, day), 2)),
		limit.Result{Allowed: true, Remaining: 3, ResetAfter: 2 * day})
	s.want(s.take(s.charge("k", tokens(5, day), 1)), limit.Result{Allowed: true, Remaining: 4, ResetAfter: day})
}

func (s *suite) largeNumbers() {
	year := time.Duration(limit.MaxPeriod) * time.Microsecond
	slowest := tokens(limit.MaxTokens, year)
	s.want(s.take(s.charge("slowest", slowest, 1)),
		limit.Result{Allowed: true, Remaining: limit.MaxTokens - 1, ResetAfter: year})
	s.want(s.take(s.charge("slowest", slowest, limit.MaxTokens-1)),
		limit.Result{Allowed: true, ResetAfter: limit.Forever})
	s.want(s.take(s.charge("slowest", slowest, 2)),
		limit.Result{RetryAfter: 2 * year, ResetAfter: limit.Forever})

	window := limit.NewSlidingWindow(limit.MaxTokens, year)
	s.want(s.take(s.charge("window", window, limit.MaxTokens-1)),
		limit.Result{Allowed: true, Remaining: 1, ResetAfter: 2 * year})

	million := limit.Rate{Micro: limit.MaxRate * limit.Micro, Period: limit.Micro}
	fastest := limit.NewTokenBucket(limit.MaxTokens*limit.Micro, million)
	got := s.take(s.charge("fastest", fastest, limit.MaxTokens))[0]
	if want := limit.MaxTokens / limit.MaxRate * time.Second; !got.Allowed || got.ResetAfter != want {
		s.Errorf("a billion tokens at a million a second: %+v, want allowed, reset after %v", got, want)
	}
}

func (s *suite) manyBuckets() {
	const n = 64
	l := tokens(2, day)
	var charges []limit.Charge
	var left, empty []limit.Result
	for i := range n {
		charges = append(charges, s.charge(fmt.Sprint(i), l, 1))
		left = append(left, limit.Result{Allowed: true, Remaining: 1, ResetAfter: day})
		empty = append(empty, limit.Result{Allowed: true, ResetAfter: 2 * day})
	}
	s.want(s.take(charges...), left...)
	s.want(s.take(charges...), empty...)
	s.want(s.take(charges[n-1]), limit.Result{RetryAfter: day, ResetAfter: 2 * day})
}

// concurrency lets many requests race for each key: exactly the capacity is admitted.
func (s *suite) concurrency() {
	const keys, capacity, workers, each = 4, 50, 16, 40
	for _, l := range []limit.Limit{tokens(capacity, day), limit.NewSlidingWindow(capacity, day)} {
		var admitted [keys]atomic.Int64
		var racing sync.WaitGroup
		for range workers {
			racing.Go(func() {
				for range each {
					for k := range keys {
						c := s.charge(fmt.Sprint(l.Algorithm, k), l, 1)
						if s.decided(c) {
							admitted[k].Add(1)
						}
					}
				}
			})
		}
		racing.Wait()
		for k := range admitted {
			if got := admitted[k].Load(); got != capacity {
				s.Errorf("%v: %d of %d concurrent requests admitted, want %d", l.Algorithm, got, workers*each, capacity)
			}
		}
	}
}

// crossedBuckets lets requests name the same buckets in opposite orders: no deadlock, and no bucket is charged for
// a request that another denied.
func (s *suite) crossedBuckets() {
	const workers, each, buckets = 16, 30, 5
	narrow, wide := tokens(100, day), tokens(1000, day)
	var admitted atomic.Int64
	var racing sync.WaitGroup
	for w := range workers {
		racing.Go(func() {
			var charges []limit.Charge
			for b := range buckets {
				l := wide
				if b == 2 {
					l = narrow
				}
				charges = append(charges, s.charge(fmt.Sprint(b), l, 1))
			}
			if w%2 == 0 {
				slices.Reverse(charges)
			}
			for range each {
				if s.decided(charges...) {
					admitted.Add(1)
				}
			}
		})
	}
	racing.Wait()
	if got := admitted.Load(); got != 100 {
		s.Errorf("%d admitted, want the 100 of the narrowest bucket", got)
	}
	// The time until it is full tells fractions of a token too: a store that gives back keeps what was regained meanwhile.
	if got := s.take(s.charge("0", wide, 0))[0].ResetAfter; (got - 100*day).Abs() > slack {
		s.Errorf("a wide bucket is full in %v, want %v: denied requests were charged", got, 100*day)
	}
}

// decided is take for goroutines other than the test's own: it must not call Fatal.
func (s *suite) decided(charges ...limit.Charge) (admitted bool) {
	c := failure.NewCall(charges, time.Now().Add(patience))
	s.store.Submit(c)
	<-c.Done()
	if c.Cause() != failure.CauseNone {
		s.Errorf("the store failed: %v", c.Cause())
		return false
	}
	return !slices.ContainsFunc(c.Results, func(r limit.Result) bool { return !r.Allowed })
}

// noTimeLeft allows both answers to a call that nobody waits for any more, but not silence, and no lie.
func (s *suite) noTimeLeft() {
	l := tokens(1, day)
	c := failure.NewCall([]limit.Charge{s.charge("k", l, 1)}, time.Now().Add(-time.Second))
	s.store.Submit(c)
	s.await(c)
	charged := c.Cause() == failure.CauseNone
	if got := s.take(s.charge("k", l, 1))[0].Allowed; got == charged {
		s.Errorf("the late call reported %v, then the bucket admitted: %v", c.Cause(), got)
	}
}
