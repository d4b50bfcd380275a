package redisstore_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// elsewhere is a Redirect that writes down what it is given, and fails it.
type elsewhere struct {
	mu   sync.Mutex
	seen map[string]redisstore.Redirection // by the key of the first charge
}

func (e *elsewhere) redirect(c *failure.Call, to redisstore.Redirection) {
	e.mu.Lock()
	e.seen[c.Charges[0].Key] = to
	e.mu.Unlock()
	c.Fail(to.Cause)
}

func (e *elsewhere) all() map[string]redisstore.Redirection {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen
}

// node is a rig of one lane for a server that is a Cluster's node, whose answers are held back until release is called.
func node(t *testing.T, url string) (r *rig, e *elsewhere, hold, release func()) {
	t.Helper()
	e = &elsewhere{seen: map[string]redisstore.Redirection{}}
	network, address, _ := strings.Cut(url, "://")
	_ = network
	proxy := redistest.NewProxy(t, "tcp", address)
	cfg := quick()
	cfg.Lanes, cfg.CheckInterval, cfg.SocketTimeout = 1, time.Hour, redistest.Patience
	cfg.Redirect = e.redirect
	r = run(t, at(t, "redis://"+proxy.Addr()), cfg).serving()
	return r, e, func() { proxy.Delay(redistest.Patience) }, proxy.Heal
}

// in returns a call for one bucket in a slot.
func in(slot uint16, key string) *failure.Call {
	c := failure.NewCall([]limit.Charge{{Key: key, Limit: hourly(10), Cost: 1, Endpoint: endpoint}}, time.Now().Add(redistest.Patience))
	c.Route.Slot = slot
	return c
}

// together has the calls share a round trip.
func together(r *rig, hold, release func(), calls ...*failure.Call) {
	r.t.Helper()
	hold()
	first := in(0, "first")
	r.Submit(first)
	redistest.Eventually(r.t, "the first call is sent", func() bool { return r.Stats().InFlight == 1 })
	for _, c := range calls {
		r.Submit(c)
	}
	release()
	r.cause(first)
	for _, c := range calls {
		r.cause(c)
	}
}

// TestStore_OneCommandPerSlot has calls of three slots share a round trip.
func TestStore_OneCommandPerSlot(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	r, _, hold, release := node(t, server.URL())
	var calls []*failure.Call
	for n := range 30 {
		calls = append(calls, in(uint16(n%3), fmt.Sprint("bucket-", n%3)))
	}
	alone := in(1, "bucket-1")
	alone.Route.Alone = true
	calls = append(calls, alone)
	before := evalshas(t, server)
	together(r, hold, release, calls...)
	if got := evalshas(t, server) - before; got != 5 { // the first call's, three slots', and the lone one's
		t.Errorf("%d commands for 32 calls of three slots, one of them alone; want 5", got)
	}
	if r.hooks.count("batch of 31: none") != 1 || r.health.count("answered none") != 2 {
		t.Errorf("hooks: %v, evidence: %v", r.hooks.all(), r.health.all())
	}
	// Each bucket of 10 is charged in the order of the calls, and the lone one comes last in its slot.
	for n, c := range calls {
		want := limit.Result{Allowed: n < 30, Remaining: max(0, int64(9-n/3))}
		if got := c.Results[0]; got.Allowed != want.Allowed || got.Remaining != want.Remaining {
			t.Errorf("call %d: %+v, want %+v", n, got, want)
		}
		if c.At < 1e15 || time.Since(time.UnixMicro(c.At)).Abs() > time.Hour {
			t.Errorf("call %d was decided at %d", n, c.At)
		}
	}
}

func evalshas(t *testing.T, server *redistest.Server) (calls int) {
	t.Helper()
	stats := server.Client().InfoMap(t.Context(), "commandstats").Val()["Commandstats"]["cmdstat_evalsha"]
	if _, err := fmt.Sscanf(stats, "calls=%d", &calls); err != nil {
		t.Fatalf("commandstats: %q: %v", stats, err)
	}
	return calls
}

// byKey is a fake that answers each bucket as it is told, and "asking" with OK.
func byKey(t *testing.T, answers map[string]string) (fake *redistest.Fake, commands func() []string) {
	var mu sync.Mutex
	var seen []string
	fake = redistest.NewFake(t, redistest.Healthy(func(args []string) string {
		mu.Lock()
		defer mu.Unlock()
		if args[0] == "asking" {
			seen = append(seen, "asking")
			return "+OK\r\n"
		}
		seen = append(seen, args[3])
		answer, ok := answers[args[3]]
		if !ok {
			return redistest.Decided(1, 9, 0, 1000)
		}
		if answer == noScriptOnce {
			delete(answers, args[3])
			return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
		}
		return answer
	}))
	return fake, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), seen...)
	}
}

const noScriptOnce = "no script, once"

// TestStore_EachSlotHasItsOwnAnswer lets the commands of one round trip end in every way there is.
func TestStore_EachSlotHasItsOwnAnswer(t *testing.T) {
	fake, _ := byKey(t, map[string]string{
		"moved":  "-MOVED 3999 127.0.0.1:6381\r\n",
		"ask":    "-ASK 3999 fd00::1:6381\r\n",
		"again":  "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
		"down":   "-CLUSTERDOWN Hash slot not served\r\n",
		"oom":    "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
		"script": noScriptOnce,
	})
	r, e, hold, release := node(t, fake.URL())
	calls := map[string]*failure.Call{}
	for n, key := range []string{"fine", "moved", "ask", "again", "down", "oom", "script"} {
		calls[key] = in(uint16(n), key)
	}
	shared := in(2, "ask too") // the slot of "ask"
	together(r, hold, release, calls["fine"], calls["moved"], calls["ask"], shared, calls["again"], calls["down"],
		calls["oom"], calls["script"])
	got := map[string]failure.Cause{}
	for key, c := range calls {
		got[key] = c.Cause()
	}
	want := map[string]failure.Cause{
		"fine": failure.CauseNone, "moved": failure.CauseMoved, "ask": failure.CauseMoved, "again": failure.CauseTryAgain,
		"down": failure.CauseClusterDown, "oom": failure.CauseOOM, "script": failure.CauseNone,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	ask := redisstore.Redirection{Kind: redisstore.Ask, Address: "fd00::1:6381", Cause: failure.CauseMoved, Shared: true}
	wantSeen := map[string]redisstore.Redirection{
		"moved": {Kind: redisstore.Moved, Address: "127.0.0.1:6381", Cause: failure.CauseMoved},
		"ask":   ask, "ask too": ask,
		"again": {Kind: redisstore.TryAgain, Cause: failure.CauseTryAgain},
		"down":  {Kind: redisstore.ClusterDown, Cause: failure.CauseClusterDown},
	}
	if diff := cmp.Diff(wantSeen, e.all()); diff != "" {
		t.Errorf("redirections (-want +got):\n%s", diff)
	}
	if fake.Dials() != 1 || r.health.count("answered oom") != 1 || r.health.count("answered none") != 2 || len(r.health.all()) != 4 {
		t.Errorf("%d dials, evidence: %v", fake.Dials(), r.health.all())
	}
}

// TestStore_RedirectionsAreNoEvidence: a node that only sends calls elsewhere neither works nor fails.
func TestStore_RedirectionsAreNoEvidence(t *testing.T) {
	fake, _ := byKey(t, map[string]string{"moved": "-MOVED 3999 127.0.0.1:6381\r\n"})
	r, _, _, _ := node(t, fake.URL())
	r.health.reset()
	c := in(1, "moved")
	r.Submit(c)
	if got := r.cause(c); got != failure.CauseMoved {
		t.Errorf("the call ended with %v", got)
	}
	if diff := cmp.Diff(map[string]int{"alive": 1}, r.health.all()); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
}

// TestStore_AskingGoesAhead: a call that may enter a slot on its way says so right before, and only for itself.
func TestStore_AskingGoesAhead(t *testing.T) {
	fake, commands := byKey(t, nil)
	r, _, hold, release := node(t, fake.URL())
	one, two, other := in(1, "one"), in(1, "two"), in(1, "other")
	one.Route.Asking, two.Route.Asking = true, true
	together(r, hold, release, one, other, two)
	want := []string{"first", "asking", "one", "other", "asking", "two"}
	if diff := cmp.Diff(want, commands()); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

// TestStore_AConnectionBreaksBetweenAnswers: what was answered counts, and nothing is sent again.
func TestStore_AConnectionBreaksBetweenAnswers(t *testing.T) {
	fake, commands := byKey(t, map[string]string{"two": "", "three": redistest.HangUp})
	r, _, hold, release := node(t, fake.URL())
	one, two, three := in(1, "one"), in(2, "two"), in(3, "three")
	together(r, hold, release, one, two, three)
	if one.Cause() != failure.CauseNone || two.Cause() != failure.CauseReset || three.Cause() != failure.CauseReset {
		t.Errorf("the calls ended with %v, %v and %v", one.Cause(), two.Cause(), three.Cause())
	}
	r.serving()
	if diff := cmp.Diff([]string{"first", "one", "two", "three"}, commands()); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

// TestStore_DryCallsChargeNothing asks what a charge would do.
func TestStore_DryCallsChargeNothing(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	r, _, _, _ := node(t, server.URL())
	for range 3 {
		c := in(1, "dry")
		c.Route.Dry = true
		r.Submit(c)
		if r.cause(c); c.Results[0].Remaining != 10 || !c.Results[0].Allowed {
			t.Errorf("a dry call: %+v", c.Results[0])
		}
	}
	if n := server.Client().Exists(t.Context(), "dry").Val(); n != 0 {
		t.Error("a dry call left a bucket")
	}
}

// TestStore_RefundsPassTheDenyCache: a bucket that is known to deny still takes back what it was charged, and admits
// again at once.
func TestStore_RefundsPassTheDenyCache(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	r := run(t, at(t, server.URL()), quick()).serving()
	full := limit.Charge{Key: "rl:back", Limit: hourly(3), Cost: 3}
	charged := r.submit(full)
	r.cause(charged)
	if got := r.take(full)[0]; got.Allowed || r.Stats().DenyCache.Entries != 1 {
		t.Fatalf("the bucket is not known to deny: %+v, %+v", got, r.Stats().DenyCache)
	}
	back := full
	back.Cost, back.At = -full.Cost, charged.At
	if got := r.take(back)[0]; !got.Allowed || got.Remaining != 3 {
		t.Errorf("after the refund: %+v", got)
	}
	if got := r.take(full)[0]; !got.Allowed {
		t.Errorf("what was given back is not admitted: %+v", got)
	}
}
