package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/emergency"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// numbered admits, and says of each bucket that as much remains as its key ends with.
func numbered(keys []string) string {
	var all strings.Builder
	for _, key := range keys {
		var n int64
		_, _ = fmt.Sscanf(key[strings.LastIndexByte(key, ':')+1:], "%d", &n)
		_, rest, _ := strings.Cut(redistest.Decided(1, n, 0, 1000), "\r\n")
		all.WriteString(strings.TrimSuffix(rest[7:], "\r\n"))
	}
	return bulk(strings.Repeat("\x00", 7) + all.String())
}

// TestStore_UnderAGuard has the nodes do everything they can do to requests whose callers are impatient, and use their
// calls again and again. Nobody is told what was meant for somebody else.
func TestStore_UnderAGuard(t *testing.T) {
	const callers, each = 16, 150
	f := startFakes(t, 3)
	cfg := quick(f.addresses()...)
	cfg.NAT = map[string]string{}
	var slow *redistest.Proxy
	for _, n := range f.nodes {
		slow = redistest.NewProxy(t, "tcp", n.Addr())
		cfg.NAT[n.Addr()] = slow.Addr()
	}
	cfg.Breaker.Failures, cfg.Store.CheckInterval = 1<<30, time.Hour
	r := run(t, cfg).serving()
	for node := range f.nodes {
		random := rand.New(rand.NewPCG(uint64(node), 19)) // the fakes answer one at a time
		f.answer(node, func(keys []string) string {
			switch random.IntN(12) {
			case 0:
				return "-OOM command not allowed\r\n"
			case 1:
				return "-TRYAGAIN later\r\n"
			case 2:
				return "-MOVED 1 " + f.nodes[random.IntN(3)].Addr() + "\r\n"
			case 3:
				return "-ASK 1 " + f.nodes[random.IntN(3)].Addr() + "\r\n"
			case 4:
				return "-CLUSTERDOWN it is\r\n"
			default:
				return numbered(keys)
			}
		})
	}
	slow.Delay(8 * time.Millisecond)
	guard, err := failure.NewGuard(r, nil, emergency.New(), failure.GuardConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var admitted, failed atomic.Int64
	var calling sync.WaitGroup
	for caller := range callers {
		calling.Go(func() {
			random := rand.New(rand.NewPCG(uint64(caller), 20))
			for range each {
				var charges []limit.Charge
				for range 1 + random.IntN(3) {
					charges = append(charges, one(fmt.Sprintf("{%d}:%d", random.IntN(9), 100+random.IntN(1e6))))
				}
				results := make([]limit.Result, len(charges))
				if d := guard.Decide(t.Context(), charges, results); d.Reason != failure.Allowed {
					failed.Add(1)
					continue
				}
				admitted.Add(1)
				for i, c := range charges {
					if want := fmt.Sprintf(":%d", results[i].Remaining); !strings.HasSuffix(c.Key, want) {
						t.Errorf("of %s it is said that %d remain", c.Key, results[i].Remaining)
					}
				}
			}
		})
	}
	calling.Wait()
	t.Logf("%d admitted, %d failed; %+v", admitted.Load(), failed.Load(), r.Stats().Redirects)
	if admitted.Load() < callers || failed.Load() < callers {
		t.Errorf("%d admitted, %d failed: this tests little", admitted.Load(), failed.Load())
	}
	redistest.Eventually(t, "every call has ended", func() bool {
		s := r.Stats()
		return s.Store.Queued+s.Store.InFlight+s.Refunds.InFlight == 0
	})
}
