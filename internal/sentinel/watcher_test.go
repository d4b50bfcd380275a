package sentinel_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/sentinel"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

var (
	_ redisstore.Resolver = (*sentinel.Watcher)(nil)
	_ interface {
		Moved() <-chan struct{}
		Suspect(failure.Cause)
		Replicas() []redisstore.Target
	} = (*sentinel.Watcher)(nil)
)

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func TestWatcher_ResolvesAndTellsOfTheFirstMaster(t *testing.T) {
	f := fake(t, play{id: id("a"), master: "10.0.0.1:6379", epoch: 3, replicas: []string{"10.0.0.2:6379"}})
	w, err := sentinel.New(sentinel.Config{Master: name, Addresses: []string{f.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	moved := w.Moved()
	if isClosed(moved) {
		t.Error("Moved is closed before anything is known")
	}
	r := watch(t, sentinel.Config{Addresses: []string{f.Addr()}, DB: 4, Data: redisstore.Access{Username: "rl"}})
	wanted := redisstore.Target{Network: "tcp", Address: "10.0.0.1:6379", Username: "rl", DB: 4}
	if diff := cmp.Diff(wanted, r.target()); diff != "" {
		t.Errorf("Resolve (-want +got):\n%s", diff)
	}
	wanted.Address = "10.0.0.2:6379"
	if diff := cmp.Diff([]redisstore.Target{wanted}, r.Replicas()); diff != "" {
		t.Errorf("Replicas (-want +got):\n%s", diff)
	}
	redistest.Eventually(t, "the hook hears of the master", func() bool { return len(r.switched()) == 1 })
	if diff := cmp.Diff([]sentinel.Switch{{To: "10.0.0.1:6379", Epoch: 3}}, r.switched()); diff != "" {
		t.Errorf("Switched (-want +got):\n%s", diff)
	}
	if s := r.Stats(); s.Switches != 0 || s.Epoch != 3 || s.Since.IsZero() || s.Agreeing != 1 || s.Needed != 2 ||
		s.HealthyReplicas() != 1 {
		t.Errorf("Stats = %+v", s)
	}
}

func TestWatcher_MovesOnAnAnnouncement(t *testing.T) {
	p := play{id: id("a"), master: "10.0.0.1:6379", epoch: 3}
	f := fake(t, p)
	proxy := redistest.NewProxy(t, "tcp", f.Addr())
	r := watch(t, sentinel.Config{Addresses: []string{proxy.Addr()}})
	r.resolve()
	moved := r.Moved()
	// The announcement comes with the next subscription. What it is asked meanwhile must not contradict it.
	p.master, p.epoch = "10.0.0.2:6379", 4
	p.events = pmessage("+odown", "master mymaster 10.0.0.1 6379 #quorum 2/2") +
		pmessage("+switch-master", "othermaster 10.0.0.1 6379 10.0.0.9 6379") +
		pmessage("+switch-master", "mymaster 10.0.0.1 6379 10.0.0.2 6379")
	announced := make(chan time.Time, 100)
	f.Say(func(args []string) string {
		switch {
		case args[0] == "psubscribe":
			announced <- time.Now()
		case len(announced) == 0:
			return "" // no answer may be what moves it
		}
		return acting(p)(args)
	})
	proxy.Cut()
	timeout := time.NewTimer(redistest.Patience)
	defer timeout.Stop()
	select {
	case <-moved:
		t.Logf("moved %v after the announcement", time.Since(<-announced))
	case <-timeout.C:
		t.Fatalf("not moved; stats: %+v", r.Stats())
	}
	if got := r.resolve(); got != "10.0.0.2:6379" {
		t.Errorf("Resolve = %s, want the new master", got)
	}
	if isClosed(r.Moved()) {
		t.Error("Moved stays closed after the move")
	}
	r.await("the epoch is confirmed", func(s sentinel.Stats) bool { return s.Epoch == 4 && s.Switches == 1 })
}

// While a failover ends, a Sentinel may change its mind between two of its answers. They do not belong together.
func TestWatcher_BelievesNoAnswerThatWasTorn(t *testing.T) {
	old, p := play{id: id("a"), master: "10.0.0.1:6379"}, play{id: id("a"), master: "10.0.0.2:6379", epoch: 2}
	asked := 0
	var mu sync.Mutex
	f := redistest.NewFake(t, func(args []string) string {
		mu.Lock()
		defer mu.Unlock()
		if len(args) > 1 && strings.EqualFold(args[1], "get-master-addr-by-name") {
			if asked++; asked == 1 {
				return acting(old)(args)
			}
		}
		return acting(p)(args)
	})
	r := watch(t, sentinel.Config{Addresses: []string{f.Addr()}})
	if got := r.resolve(); got != "10.0.0.2:6379" {
		t.Errorf("Resolve = %s: the old address was joined to the new epoch", got)
	}
}

func TestWatcher_FollowsTheNewestOfThoseThatDisagree(t *testing.T) {
	a := fake(t, play{id: id("a"), master: "10.0.0.1:6379", epoch: 3})
	b := fake(t, play{id: id("b"), master: "10.0.0.2:6379", epoch: 4})
	r := watch(t, sentinel.Config{Addresses: []string{a.Addr(), b.Addr()}})
	r.await("the master with the higher epoch is taken", func(s sentinel.Stats) bool {
		return s.Master == "10.0.0.2:6379" && s.Known == 2 && s.Reachable == 2 && s.Agreeing == 1
	})
}

func TestWatcher_LearnsSentinelsThroughNAT(t *testing.T) {
	behind := fake(t, play{id: id("b"), master: "10.0.0.1:6379"})
	p := play{id: id("a"), master: "10.0.0.1:6379", peers: []string{"10.0.0.8:26379"}, replicas: []string{"10.0.0.2:6379"}}
	front := fake(t, p)
	r := watch(t, sentinel.Config{
		Addresses: []string{front.Addr()}, Data: redisstore.Access{TLS: true},
		NAT: map[string]string{"10.0.0.8:26379": behind.Addr(), "10.0.0.1:6379": "gate.example:7001"},
	})
	r.await("the other Sentinel answers", func(s sentinel.Stats) bool { return s.Known == 2 && s.Reachable == 2 })
	target := r.target()
	if target.Address != "gate.example:7001" || target.TLS.ServerName != "10.0.0.1" {
		t.Errorf("Resolve = %s verified as %s, want gate.example:7001 as 10.0.0.1", target.Address, target.TLS.ServerName)
	}
	if got := r.Replicas(); len(got) != 1 || got[0].Address != "10.0.0.2:6379" {
		t.Errorf("Replicas = %+v", got)
	}
	if s := r.Stats(); s.Master != "10.0.0.1:6379" {
		t.Errorf("Stats.Master = %s, want it as announced", s.Master)
	}
}

// A deployment that announces names, and clients that know the same Sentinels by other names.
func TestWatcher_CountsASentinelOnceWhateverItsAddresses(t *testing.T) {
	p := play{id: id("a"), master: "redis-0.example:6379", epoch: 1}
	f := fake(t, p)
	configured := redistest.NewProxy(t, "tcp", f.Addr())
	announced, anonymous := fake(t, p), redistest.NewProxy(t, "tcp", f.Addr())
	p.peers = []string{announced.Addr() + "=" + p.id, anonymous.Addr()}
	f.Say(acting(p))
	r := watch(t, sentinel.Config{Addresses: []string{f.Addr(), configured.Addr()}})
	r.await("the address without an id was tried and given up", func(s sentinel.Stats) bool {
		return s.Known == 2 && s.Reachable == 2 && s.Agreeing == 1 && anonymous.Conns() == 0
	})
	if n := announced.Dials(); n != 0 {
		t.Errorf("%d connections to an address of a Sentinel that is watched already", n)
	}
	if got := r.resolve(); got != "redis-0.example:6379" {
		t.Errorf("Resolve = %s, want the host as announced", got)
	}
}

func TestWatcher_LearnsABoundedNumberOfSentinels(t *testing.T) {
	p := play{id: id("a"), master: "10.0.0.1:6379"}
	for i := range 100 {
		p.peers = append(p.peers, fmt.Sprintf("127.0.0.1:%d", i+1))
	}
	r := watch(t, sentinel.Config{Addresses: []string{fake(t, p).Addr()}, MaxSentinels: 5})
	r.await("some are learnt", func(s sentinel.Stats) bool { return s.Known == 5 })
}

func TestWatcher_ForgetsLearntSentinelsThatNobodyNamesAnyMore(t *testing.T) {
	p := play{id: id("a"), master: "10.0.0.1:6379", peers: []string{"127.0.0.1:1"}}
	f := fake(t, p)
	r := watch(t, sentinel.Config{
		Addresses: []string{f.Addr(), "127.0.0.1:2"}, PollInterval: 20 * time.Millisecond, ForgetAfter: time.Nanosecond,
	})
	r.await("it is learnt", func(s sentinel.Stats) bool { return s.Known == 3 })
	p.peers = nil
	f.Say(acting(p))
	r.await("it is forgotten, unlike the configured one", func(s sentinel.Stats) bool {
		isSeed := func(one sentinel.Member) bool { return one.Address == "127.0.0.1:2" }
		return s.Known == 2 && slices.ContainsFunc(s.Sentinels, isSeed)
	})
}

func TestWatcher_NoticesHalfOpenConnections(t *testing.T) {
	f := fake(t, play{id: id("a"), master: "10.0.0.1:6379"})
	proxy := redistest.NewProxy(t, "tcp", f.Addr())
	r := watch(t, sentinel.Config{
		Addresses: []string{proxy.Addr()}, PollInterval: 50 * time.Millisecond, Timeout: 200 * time.Millisecond,
	})
	well := func(s sentinel.Stats) bool { return s.Agreeing == 1 && s.Sentinels[0].Subscribed }
	r.await("it is watched", well)
	proxy.Blackhole()
	r.await("both connections are given up", func(s sentinel.Stats) bool {
		return s.Reachable == 0 && s.Agreeing == 0 && !s.Sentinels[0].Subscribed
	})
	if got := r.resolve(); got != "10.0.0.1:6379" {
		t.Errorf("Resolve = %s, want the last known master", got)
	}
	proxy.Heal()
	r.await("it is watched again", well)
}

func TestWatcher_ASentinelThatHangsDelaysNobody(t *testing.T) {
	hung := fake(t, play{override: map[string]string{"sentinel myid": "", "psubscribe *": ""}})
	a := fake(t, play{id: id("a"), master: "10.0.0.1:6379"})
	b := fake(t, play{id: id("b"), master: "10.0.0.1:6379"})
	r := watch(t, sentinel.Config{Addresses: []string{hung.Addr(), a.Addr(), b.Addr()}, Timeout: redistest.Patience})
	if got := r.resolve(); got != "10.0.0.1:6379" {
		t.Errorf("Resolve = %s", got)
	}
}

func TestWatcher_ReadsCredentialsAnewForEveryConnection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	p := play{id: id("a"), master: "10.0.0.1:6379", password: "new"}
	f := fake(t, p)
	r := watch(t, sentinel.Config{
		Addresses: []string{f.Addr()}, Sentinels: redisstore.Access{PasswordFile: file}, Data: redisstore.Access{PasswordFile: file},
	})
	r.await("the old one is refused", func(s sentinel.Stats) bool {
		return strings.Contains(s.Sentinels[0].LastError, "WRONGPASS")
	})
	write("new")
	if got := r.target().Password; got != "new" {
		t.Errorf("Resolve: password %q, want the new one", string(got))
	}
}

func TestWatcher_SuspectAsksAtOnceButNotInAStorm(t *testing.T) {
	p := play{id: id("a"), master: "10.0.0.1:6379"}
	questions := make(chan struct{}, 1000)
	f := redistest.NewFake(t, func(args []string) string {
		if len(args) > 1 && strings.EqualFold(args[1], "master") {
			questions <- struct{}{}
		}
		return acting(p)(args)
	})
	r := watch(t, sentinel.Config{
		Addresses: []string{f.Addr()}, PollInterval: time.Hour, AlertInterval: time.Hour, QuorumInterval: time.Hour,
	})
	r.resolve()
	r.await("it is subscribed", func(s sentinel.Stats) bool { return s.Sentinels[0].Subscribed })
	before := len(questions)
	r.Suspect(failure.CauseReadOnly)
	redistest.Eventually(t, "it is asked", func() bool { return len(questions) > before })
	const storm = 60 * time.Millisecond
	start := time.Now()
	for time.Since(start) < storm {
		r.Suspect(failure.CauseReset)
	}
	took := time.Since(start)
	// One wish more may be waiting, and one for every 100 ms that this took.
	if most := before + 3 + int(took/(100*time.Millisecond)); len(questions) > most {
		t.Errorf("%d questions within %v, want at most %d", len(questions), took, most)
	}
	for range 3 {
		before = len(questions)
		redistest.Eventually(t, "it is asked again", func() bool {
			r.Suspect(failure.CauseReset)
			return len(questions) > before
		})
	}
}

func TestWatcher_ShowsNothingThatAnAdministratorSet(t *testing.T) {
	p := play{id: id("a"), master: "10.0.0.1:6379"}
	p.events = pmessage("+set", "master mymaster 10.0.0.1 6379 auth-pass s3cret") +
		pmessage("+s3cret", "s3cret s3cret") + pmessage("+sdown", "master mymaster 10.0.0.1 6379")
	r := watch(t, sentinel.Config{Addresses: []string{fake(t, p).Addr()}})
	redistest.Eventually(t, "all three are heard", func() bool { return len(r.told()) >= 3 })
	if all := fmt.Sprintf("%+v", r.told()); strings.Contains(all, "s3cret") {
		t.Errorf("events = %s", all)
	}
	if e := r.told()[2]; e.Name != "+sdown" || e.Kind != "master" || e.Address != "10.0.0.1:6379" {
		t.Errorf("event = %+v", e)
	}
}
