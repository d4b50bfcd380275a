package cluster_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/honestlimit/ratelimit/internal/cluster"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// held answers only when release is closed.
func held(f *fakes, release <-chan struct{}, reply string) func([]string) string {
	return func([]string) string {
		f.mu.Unlock()
		<-release
		f.mu.Lock()
		return reply
	}
}

// awaitLog waits until so many commands were logged, and returns them in order of the alphabet.
func (f *fakes) awaitLog(t *testing.T, n int) (all []string) {
	t.Helper()
	redistest.Eventually(t, "the nodes are asked", func() bool { all = append(all, f.log()...); return len(all) >= n })
	slices.Sort(all)
	return all
}

// TestStore_OneSlotFails: the call fails at once, and the other slot gives back what it was charged, whenever it answers.
func TestStore_OneSlotFails(t *testing.T) {
	for name, late := range map[string]bool{"after the other has admitted": false, "before the other has answered": true} {
		t.Run(name, func(t *testing.T) {
			f := startFakes(t, 2)
			cfg := quick(f.addresses()...)
			cfg.Store.Lanes = 1
			r := run(t, cfg).serving()
			failing, admitting := f.key(0, 1), f.key(1, 1)
			fail, admit := make(chan struct{}), make(chan struct{})
			f.answer(0, held(f, fail, "-OOM command not allowed\r\n"))
			f.answer(1, held(f, admit, admits(1)))
			call := r.submit(one(failing), one(admitting))
			f.awaitLog(t, 2)
			order := []chan struct{}{admit, fail}
			if late {
				slices.Reverse(order)
			}
			close(order[0])
			if late {
				if got := r.cause(call); got != failure.CauseOOM {
					t.Errorf("the call ended with %v", got)
				}
			} else {
				redistest.Eventually(t, "one has answered", func() bool { return r.Stats().Store.InFlight == 1 })
			}
			f.answer(1, nil)
			close(order[1])
			if !late {
				if got := r.cause(call); got != failure.CauseOOM {
					t.Errorf("the call ended with %v", got)
				}
			}
			if diff := cmp.Diff([]string{"1: " + admitting}, f.awaitLog(t, 1)); diff != "" {
				t.Errorf("asked afterwards (-want +got):\n%s", diff)
			}
			redistest.Eventually(t, "it is counted", func() bool { return r.Stats().Refunds.Done == 1 })
		})
	}
}

// TestStore_SilenceIsNotRefunded: who does not answer may have charged or not, and is not asked to give back.
func TestStore_SilenceIsNotRefunded(t *testing.T) {
	f := startFakes(t, 2)
	cfg := quick(f.addresses()...)
	cfg.Store.SocketTimeout, cfg.Store.CheckInterval = 50*time.Millisecond, time.Hour
	r := run(t, cfg).serving()
	f.answer(0, func([]string) string { return "" })
	f.answer(1, func([]string) string { return denies() })
	call := r.submit(one(f.key(0, 1)), one(f.key(1, 1)))
	if got := r.cause(call); got != failure.CauseIOTimeout {
		t.Errorf("the call ended with %v", got)
	}
	f.awaitLog(t, 2)
	if got := r.Stats().Refunds; got != (cluster.RefundStats{}) {
		t.Errorf("refunds %+v", got)
	}
}

// TestStore_ARefundThatFails is given up and counted.
func TestStore_ARefundThatFails(t *testing.T) {
	f := startFakes(t, 2)
	r := run(t, quick(f.addresses()...)).serving()
	admitting := f.key(0, 1)
	asked := 0
	f.answer(0, func([]string) string {
		if asked++; asked == 1 {
			return admits(1)
		}
		return "-MOVED 1 " + f.nodes[1].Addr() + "\r\n"
	})
	f.answer(1, func([]string) string { return denies() })
	r.take(one(admitting), one(f.key(1, 1)))
	redistest.Eventually(t, "the refund is lost", func() bool { return r.Stats().Refunds.Lost == 1 })
	for _, line := range f.log() {
		if line == "1: "+admitting {
			t.Error("the refund went to a node that may never have heard of the charge")
		}
	}
}

// TestStore_AnHeirOwesNothing: who took over from the node that was charged is not asked to give back, for it may never
// have heard of the charge.
func TestStore_AnHeirOwesNothing(t *testing.T) {
	f := startFakes(t, 3)
	cfg := quick(f.addresses()...)
	cfg.PollInterval = 20 * time.Millisecond
	r := run(t, cfg).serving()
	release := make(chan struct{})
	f.answer(1, held(f, release, denies()))
	call := r.submit(one(f.key(0, 1)), one(f.key(1, 1)))
	f.awaitLog(t, 2)
	redistest.Eventually(t, "the first has answered", func() bool { return r.Stats().Store.InFlight == 1 })
	f.mu.Lock()
	f.heir = 2
	f.mu.Unlock()
	redistest.Eventually(t, "the slots have another owner", func() bool { return r.Stats().Epoch == 99 })
	close(release)
	if got := r.cause(call); got != failure.CauseNone {
		t.Errorf("the call ended with %v", got)
	}
	if got := r.Stats().Refunds; got != (cluster.RefundStats{Lost: 1}) || len(f.log()) > 0 {
		t.Errorf("refunds %+v", got)
	}
}

// TestStore_AnHeirStartsAnew: a node that was dialed while it was still a replica is tried at once when it takes over,
// whatever its breaker and the back-off have learnt.
func TestStore_AnHeirStartsAnew(t *testing.T) {
	f := startFakes(t, 2)
	late := redistest.NewFake(t, func(args []string) string {
		if args[0] == "role" {
			return "*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:1\r\n$9\r\nconnected\r\n:0\r\n"
		}
		return redistest.Healthy(func([]string) string { return "-ERR no\r\n" })(args)
	})
	f.late = late.Addr()
	cfg := quick(f.addresses()...)
	cfg.PollInterval = 20 * time.Millisecond
	// Nothing but a new start brings decisions back within the patience of a test.
	cfg.Breaker.Quarantine, cfg.Breaker.EarlyEnd = 10*redistest.Patience, 10*redistest.Patience
	cfg.Store.BackoffMax = 10 * redistest.Patience
	r := run(t, cfg)
	heir := func() (cluster.ShardStats, bool) {
		for _, sh := range r.Stats().Shards {
			if sh.Address == late.Addr() {
				return sh, true
			}
		}
		return cluster.ShardStats{}, false
	}
	redistest.Eventually(t, "the replica was given up", func() bool {
		sh, found := heir()
		return found && sh.Breaker.State == failure.Open
	})
	late.Say(redistest.Healthy(func(args []string) string { return f.say(2, args) }))
	f.mu.Lock()
	f.crowned = true
	f.mu.Unlock()
	redistest.Eventually(t, "the heir decides", func() bool {
		sh, _ := heir()
		return sh.Slots > 0 && r.cause(r.submit(one(f.key(0, 1)))) == failure.CauseNone
	})
	if sh, _ := heir(); sh.Breaker.Opened > 0 || sh.Slots != cluster.Slots/2 {
		t.Errorf("the heir is %+v, want a breaker that never opened, and half of the slots", sh)
	}
}

// TestStore_ALateRefund is counted as such: meanwhile the bucket admitted too little.
func TestStore_ALateRefund(t *testing.T) {
	f := startFakes(t, 2)
	cfg := quick(f.addresses()...)
	cfg.Store.Budget, cfg.Store.CheckInterval = 100*time.Millisecond, time.Hour
	r := run(t, cfg).serving()
	release := make(chan struct{})
	asked := 0
	f.answer(0, func([]string) string {
		if asked++; asked == 1 {
			return admits(1)
		}
		return held(f, release, admits(1))(nil)
	})
	f.answer(1, func([]string) string { return denies() })
	start := time.Now()
	r.take(one(f.key(0, 1)), one(f.key(1, 1)))
	redistest.Eventually(t, "the budget is over", func() bool { return time.Since(start) > 2*cfg.Store.Budget })
	if got := r.Stats().Refunds.InFlight; got != 1 {
		t.Errorf("%d refunds are under way, want 1", got)
	}
	close(release)
	redistest.Eventually(t, "it is counted", func() bool { return r.Stats().Refunds.Late == 1 })
}

// breaks opens the breaker of the first shard.
func breaks(t *testing.T, f *fakes, r *rig) {
	t.Helper()
	f.answer(0, fails("OOM command not allowed"))
	redistest.Eventually(t, "the breaker is open", func() bool {
		return r.cause(r.submit(one(f.key(0, 1)))) == failure.CauseBreakerOpen
	})
	f.log()
}

// TestStore_ABreakerPerShard: a shard whose breaker is open is answered for without being asked, and takes no request
// down with it that is not its own.
func TestStore_ABreakerPerShard(t *testing.T) {
	f := startFakes(t, 2)
	cfg := quick(f.addresses()...)
	cfg.Breaker.NoEarlyEnd = true
	r := run(t, cfg).serving()
	breaks(t, f, r)
	broken, fine := f.key(0, 1), f.key(1, 1)
	r.take(one(fine))
	if got := r.cause(r.submit(one(fine), one(broken))); got != failure.CauseBreakerOpen {
		t.Errorf("a call of both shards ended with %v", got)
	}
	if diff := cmp.Diff([]string{"1: " + fine}, f.log()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	states := map[failure.State]int{}
	for _, s := range r.Stats().Shards {
		states[s.Breaker.State]++
	}
	if diff := cmp.Diff(map[failure.State]int{failure.Open: 1, failure.Closed: 1}, states); diff != "" {
		t.Errorf("breakers (-want +got):\n%s", diff)
	}
}

// TestStore_AnyRequestProbes: whatever its requests look like, a shard that works again is found out.
func TestStore_AnyRequestProbes(t *testing.T) {
	for name, buckets := range map[string]func(f *fakes) []string{
		"of one slot":                     func(f *fakes) []string { return []string{f.key(0, 1)} },
		"of two slots of the shard":       func(f *fakes) []string { return []string{f.key(0, 1), f.key(0, 2)} },
		"of a slot of each of two shards": func(f *fakes) []string { return []string{f.key(1, 1), f.key(0, 1)} },
	} {
		t.Run(name, func(t *testing.T) {
			f := startFakes(t, 2)
			cfg := quick(f.addresses()...)
			cfg.Breaker.Quarantine, cfg.Breaker.ProbeTTL = 20*time.Millisecond, time.Hour
			r := run(t, cfg).serving()
			breaks(t, f, r)
			keys := buckets(f)
			ask := func() failure.Cause {
				if len(keys) == 1 {
					return r.cause(r.submit(one(keys[0])))
				}
				return r.cause(r.submit(one(keys[0]), one(keys[1])))
			}
			opened := func() (n uint64) {
				for _, s := range r.Stats().Shards {
					n += s.Breaker.Opened
				}
				return n
			}
			// What is sent elsewhere is no answer to whether the shard works, and must not use up the only permit.
			f.answer(0, fails("CLUSTERDOWN it is"))
			redistest.Eventually(t, "probes get through", func() bool { return ask() == failure.CauseClusterDown })
			before := opened()
			for range 3 { // a permit comes back with the answer to the part that had it
				redistest.Eventually(t, "the next probe gets through", func() bool { return ask() == failure.CauseClusterDown })
			}
			if got := opened(); got != before {
				t.Errorf("%d openings after answers that are no evidence", got-before)
			}
			f.answer(0, nil)
			redistest.Eventually(t, "a probe succeeds", func() bool { return ask() == failure.CauseNone })
			for _, s := range r.Stats().Shards {
				if s.Breaker.State != failure.Closed {
					t.Errorf("the breaker of %s is %v", s.Address, s.Breaker.State)
				}
			}
		})
	}
}

// TestStore_Close: whoever asks before, meanwhile and after gets an answer, and nothing is left running.
func TestStore_Close(t *testing.T) {
	f := startFakes(t, 2)
	s, err := cluster.New(quick(f.addresses()...))
	if err != nil {
		t.Fatal(err)
	}
	early := failure.NewCall(nil, time.Now())
	early.Charges = append(early.Charges, one(f.key(0, 1)))
	s.Submit(early)
	if <-early.Done(); early.Cause() != failure.CauseNotConnected {
		t.Errorf("a call before Run ended with %v", early.Cause())
	}
	running := goleak.IgnoreCurrent()
	r := run(t, quick(f.addresses()...)).serving()
	release := make(chan struct{})
	f.answer(0, held(f, release, admits(1)))
	waiting := r.submit(one(f.key(0, 1)), one(f.key(1, 1)))
	f.awaitLog(t, 2)
	stopped := make(chan struct{})
	go func() { r.stop(); close(stopped) }()
	redistest.Eventually(t, "the store is closed", func() bool {
		return r.cause(r.submit(one(f.key(1, 1)))) == failure.CauseClosed
	})
	close(release)
	if got := r.cause(waiting); got != failure.CauseNone {
		t.Errorf("what was in flight ended with %v", got)
	}
	<-stopped
	redistest.Eventually(t, "no goroutine is left", func() bool {
		// The fakes' own end when they hear that their client is gone.
		return goleak.Find(running, goleak.IgnoreTopFunction("internal/poll.runtime_pollWait")) == nil
	})
	if got := r.cause(r.submit(one(f.key(1, 1)))); got != failure.CauseClosed {
		t.Errorf("a call after the end ended with %v", got)
	}
}

// TestStore_NobodyAnswers: calls fail at once, and the first node that can be asked changes that.
func TestStore_NobodyAnswers(t *testing.T) {
	f := startFakes(t, 1)
	proxy := redistest.NewProxy(t, "tcp", f.nodes[0].Addr())
	proxy.Blackhole()
	cfg := quick(proxy.Addr(), "127.0.0.1:1")
	cfg.Timeout = 50 * time.Millisecond
	r := run(t, cfg)
	redistest.Eventually(t, "it was tried in vain", func() bool { return r.Stats().ReloadsFailed > 0 })
	if got := r.cause(r.submit(one("x"))); got != failure.CauseDial {
		t.Errorf("a call ended with %v", got)
	}
	proxy.Heal()
	r.serving().take(one("x"))
	if s := r.Stats(); s.Epoch != 1 || s.Seen.IsZero() {
		t.Errorf("epoch %d, seen %v", s.Epoch, s.Seen)
	}
}
