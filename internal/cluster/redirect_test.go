package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/cluster"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// one is a charge whose numbers do not matter.
func one(key string) limit.Charge { return charge(key, yearly(100), 1) }

// sends is an answer that sends calls elsewhere.
func sends(kind, address string) func([]string) string {
	return func([]string) string { return fmt.Sprintf("-%s 1 %s\r\n", kind, address) }
}

func fails(text string) func([]string) string {
	return func([]string) string { return "-" + text + "\r\n" }
}

// TestStore_FollowsNodes lets nodes send a call around.
func TestStore_FollowsNodes(t *testing.T) {
	for name, c := range map[string]struct {
		answers func(f *fakes) map[int]func([]string) string
		want    failure.Cause
		asked   []string // %s is the key
		counted cluster.RedirectStats
	}{
		"moved": {
			func(f *fakes) map[int]func([]string) string {
				return map[int]func([]string) string{0: sends("MOVED", f.nodes[1].Addr())}
			},
			failure.CauseNone,
			[]string{"0: %s", "1: %s"},
			cluster.RedirectStats{Moved: 1},
		},
		"ask": {
			func(f *fakes) map[int]func([]string) string {
				return map[int]func([]string) string{0: sends("ASK", f.nodes[1].Addr())}
			},
			failure.CauseNone,
			[]string{"0: %s", "1: asking", "1: %s"},
			cluster.RedirectStats{Ask: 1},
		},
		"asked and sent back": {
			func(f *fakes) map[int]func([]string) string {
				return map[int]func([]string) string{0: sends("ASK", f.nodes[1].Addr()), 1: sends("MOVED", f.nodes[0].Addr())}
			},
			failure.CauseMoved,
			[]string{"0: %s", "1: asking", "1: %s", "0: %s", "1: asking", "1: %s", "0: %s"},
			cluster.RedirectStats{Ask: 3, Moved: 2},
		},
		"moved in circles": {
			func(f *fakes) map[int]func([]string) string {
				return map[int]func([]string) string{0: sends("MOVED", f.nodes[1].Addr()), 1: sends("MOVED", f.nodes[0].Addr())}
			},
			failure.CauseMoved,
			[]string{"0: %s", "1: %s", "0: %s", "1: %s", "0: %s"},
			cluster.RedirectStats{Moved: 5},
		},
		"one bucket is to be tried again": {
			func(*fakes) map[int]func([]string) string {
				return map[int]func([]string) string{0: fails("TRYAGAIN later")}
			},
			failure.CauseTryAgain,
			[]string{"0: %s"},
			cluster.RedirectStats{TryAgain: 1},
		},
		"the cluster is down": {
			func(*fakes) map[int]func([]string) string {
				return map[int]func([]string) string{0: fails("CLUSTERDOWN it is")}
			},
			failure.CauseClusterDown,
			[]string{"0: %s"},
			cluster.RedirectStats{ClusterDown: 1},
		},
		"moved nowhere": {
			func(*fakes) map[int]func([]string) string { return map[int]func([]string) string{0: fails("MOVED 1")} },
			failure.CauseMoved,
			[]string{"0: %s"},
			cluster.RedirectStats{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFakes(t, 2)
			r := run(t, quick(f.addresses()...)).serving()
			for node, answer := range c.answers(f) {
				f.answer(node, answer)
			}
			key := f.key(0, 1)
			call := r.submit(one(key))
			if got := r.cause(call); got != c.want {
				t.Errorf("the call ended with %v, want %v", got, c.want)
			}
			var want []string
			for _, line := range c.asked {
				if line != "1: asking" {
					line = fmt.Sprintf(line, key)
				}
				want = append(want, line)
			}
			if diff := cmp.Diff(want, f.log()); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if got := r.Stats().Redirects; got != c.counted && name != "moved nowhere" {
				t.Errorf("redirects %+v, want %+v", got, c.counted)
			}
			for _, s := range r.Stats().Shards {
				if s.Breaker.Failures > 0 && name != "moved nowhere" {
					t.Errorf("evidence against %s: %+v", s.Address, s.Breaker)
				}
			}
		})
	}
}

// TestStore_FollowsToAStranger: a node may know of others before the topology does.
func TestStore_FollowsToAStranger(t *testing.T) {
	f, stranger := startFakes(t, 2), startFakes(t, 1)
	cfg := quick(f.addresses()...)
	cfg.PollInterval = time.Hour
	r := run(t, cfg).serving()
	f.answer(0, sends("ASK", stranger.nodes[0].Addr()))
	key := f.key(0, 1)
	for range 3 {
		r.take(one(key))
	}
	want := []string{"0: asking", "0: " + key, "0: asking", "0: " + key, "0: asking", "0: " + key}
	if diff := cmp.Diff(want, stranger.log()); diff != "" {
		t.Errorf("the stranger was asked (-want +got):\n%s", diff)
	}
	if got := len(r.Stats().Shards); got != 3 {
		t.Errorf("%d shards, want 3", got)
	}
	// Nobody can make us open any number of connections.
	for n := range 40 {
		f.answer(0, sends("ASK", fmt.Sprintf("127.0.0.1:%d", 1+n)))
		r.cause(r.submit(one(key)))
	}
	if got := len(r.Stats().Shards); got > 2+16 {
		t.Errorf("%d shards", got)
	}
}

// TestStore_ABatchIsTakenApart: when a slot is on its way, calls that share a command are sent one by one, each to where
// its own bucket is, and those that come later do not share one at all.
func TestStore_ABatchIsTakenApart(t *testing.T) {
	f := startFakes(t, 2)
	cfg := quick(f.addresses()...)
	cfg.Store.Lanes, cfg.PollInterval = 1, time.Hour
	r := run(t, cfg).serving()
	here, there := f.key(0, 1)+"here", f.key(0, 1)+"there"
	release := make(chan struct{})
	first := f.key(0, 2)
	f.answer(0, holding(f, first, release, here, there))
	hold := r.submit(one(first))
	redistest.Eventually(t, "the lane waits", func() bool { return r.Stats().Store.InFlight == 1 })
	calls := []*failure.Call{r.submit(one(here)), r.submit(one(there)), r.submit(one(here))}
	close(release)
	r.cause(hold)
	for _, c := range calls {
		if got := r.cause(c); got != failure.CauseNone {
			t.Errorf("a call ended with %v", got)
		}
	}
	want := []string{
		"0: " + first, "0: " + here + " " + there + " " + here, "0: " + here, "0: " + there, "0: " + here,
		"1: asking", "1: " + there,
	}
	if diff := cmp.Diff(want, f.log()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// holding answers first only when release is closed, knows only here, and has given there away.
func holding(f *fakes, first string, release <-chan struct{}, here, there string) func([]string) string {
	return func(keys []string) string {
		switch {
		case keys[0] == first:
			f.mu.Unlock()
			<-release
			f.mu.Lock()
		case len(keys) > 1:
			return "-TRYAGAIN some are here\r\n"
		case keys[0] == there:
			return "-ASK 1 " + f.nodes[1].Addr() + "\r\n"
		}
		return admits(1)
	}
}

// TestStore_ARequestIsTakenApart: one whose own buckets are at two nodes is decided bucket by bucket.
func TestStore_ARequestIsTakenApart(t *testing.T) {
	f := startFakes(t, 2)
	r := run(t, quick(f.addresses()...)).serving()
	here, there := f.key(0, 1)+"here", f.key(0, 1)+"there"
	f.answer(0, holding(f, "", nil, here, there))
	if got := r.take(one(here), one(there)); !got[0].Allowed || !got[1].Allowed {
		t.Errorf("results %+v", got)
	}
	f.answer(1, func([]string) string { return denies() })
	got := r.take(one(here), one(there))
	if !got[0].Allowed || got[0].Remaining != 10 || got[1].Allowed {
		t.Errorf("results %+v; want 10 left as if nothing had been charged, and denied", got)
	}
	r.settle()
	if refunds := r.Stats().Refunds; refunds.Done != 1 || refunds.Lost+refunds.Late > 0 {
		t.Errorf("refunds %+v", refunds)
	}
}
