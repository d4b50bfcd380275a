package sentinel_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/sentinel"
	"github.com/honestlimit/ratelimit/internal/topology"
)

// deployment is a real master with replicas and Sentinels, and a watcher of it.
type deployment struct {
	*topology.Sentinel
	*rig
	t testing.TB
}

func deploy(t testing.TB, cfg topology.Config) *deployment {
	t.Helper()
	cfg.FailoverTimeout = 3 * time.Second
	return &deployment{Sentinel: redistest.Sentinel(t, cfg), t: t}
}

// watch has one Sentinel as its seed: the others must be learnt.
func (d *deployment) watch(cfg sentinel.Config) {
	d.t.Helper()
	login := d.SentinelLogin()
	cfg.Addresses = []string{d.Sentinels()[1].Addr()}
	cfg.Sentinels.Username = login.Username
	cfg.Sentinels.Password = redisstore.Secret(login.Password)
	d.rig = watch(d.t, cfg)
	d.watched(3)
}

// watched waits until that many Sentinels are.
func (d *deployment) watched(n int) {
	d.t.Helper()
	d.await("the Sentinels are watched", func(s sentinel.Stats) bool {
		watched := 0
		for _, one := range s.Sentinels {
			if one.Reachable && one.Subscribed {
				watched++
			}
		}
		return watched == n && s.Agreeing == n
	})
}

func (d *deployment) healthy() {
	d.t.Helper()
	redistest.Eventually(d.t, "the deployment is healthy", func() bool { return d.Healthy(d.t.Context()) == nil })
}

func (d *deployment) master() *topology.Node {
	d.t.Helper()
	node, err := d.Master(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	if got := d.resolve(); got != node.Addr() {
		d.t.Fatalf("Resolve = %s, the Sentinels name %s", got, node.Addr())
	}
	return node
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// failsOver breaks something, waits for the move, and says how long it came after the first +switch-master that a
// listener of its own heard.
func (d *deployment) failsOver(what string, breaks func(master *topology.Node) error) {
	d.t.Helper()
	old, count := d.master(), len(d.switched())
	announced := d.firstSwitch()
	moved := d.Moved()
	start := time.Now()
	must(d.t, breaks(old))
	timeout := time.NewTimer(redistest.Patience)
	defer timeout.Stop()
	select {
	case <-moved:
	case <-timeout.C:
		d.t.Fatalf("%s: not moved after %v; stats: %+v", what, redistest.Patience, d.Stats())
	}
	at := time.Now()
	d.t.Logf("%s: moved after %v, %v after the first +switch-master", what, at.Sub(start), at.Sub(<-announced))
	if now := d.resolve(); now == old.Addr() {
		d.t.Fatalf("%s: Resolve still names %s", what, now)
	}
	redistest.Eventually(d.t, "the hook hears of the switch", func() bool { return len(d.switched()) > count })
}

// firstSwitch tells when any Sentinel announced a switch.
func (d *deployment) firstSwitch() <-chan time.Time {
	d.t.Helper()
	ctx, cancel := context.WithCancel(d.t.Context())
	heard := make(chan time.Time, len(d.Sentinels()))
	var listening sync.WaitGroup
	for _, node := range d.Sentinels() {
		subscription := node.Client().Subscribe(ctx, "+switch-master")
		if _, err := subscription.Receive(ctx); err != nil {
			d.t.Fatal(err)
		}
		listening.Go(func() {
			select {
			case <-subscription.Channel():
				heard <- time.Now()
			case <-ctx.Done():
			}
			_ = subscription.Close()
		})
	}
	d.t.Cleanup(func() {
		cancel()
		listening.Wait()
	})
	return heard
}

func TestWatcher_FollowsRealFailovers(t *testing.T) {
	t.Parallel()
	d := deploy(t, topology.Config{})
	d.watch(sentinel.Config{})
	d.await("both replicas are reported", func(s sentinel.Stats) bool {
		return s.HealthyReplicas() == 2 && s.Needed == 2 && s.Quorum.OK && !s.SDown
	})
	if got := d.rig.Replicas(); len(got) != 2 {
		t.Errorf("Replicas = %+v, want 2", got)
	}

	d.failsOver("SENTINEL FAILOVER", func(*topology.Node) error {
		return d.Sentinels()[0].Client().Do(t.Context(), "sentinel", "failover", name).Err()
	})
	d.healthy()
	d.failsOver("freeze of the master", (*topology.Node).Freeze)
	frozen := d.Stats()
	if frozen.FailoverTook <= 0 || frozen.Epoch < 2 || frozen.Switches != 2 {
		t.Errorf("Stats = %+v", frozen)
	}
	for _, node := range d.Data() {
		must(t, node.Thaw())
	}
	d.healthy()

	// This is where a client that trusts one Sentinel at a time never recovers.
	attached := d.Sentinels()[1]
	d.failsOver("freeze of the master and the configured Sentinel", func(master *topology.Node) error {
		if err := attached.Freeze(); err != nil {
			return err
		}
		return master.Freeze()
	})
	d.watched(2)
	isStale := d.resolve()
	must(t, attached.Thaw())
	d.watched(3) // the stale one hears of the switch from the others
	if got, n := d.resolve(), len(d.switched()); got != isStale || n != 4 {
		t.Errorf("Resolve = %s after %d switches, want %s after 4: %+v", got, n, isStale, d.switched())
	}
	checkEvents(t, d.told())
}

func checkEvents(t *testing.T, events []sentinel.Event) {
	t.Helper()
	for _, wanted := range []string{
		"+sdown", "+odown", "+try-failover", "+elected-leader", "+selected-slave", "+promoted-slave", "+switch-master",
		"+new-epoch", "+failover-end",
	} {
		i := slices.IndexFunc(events, func(e sentinel.Event) bool { return e.Name == wanted })
		if i < 0 {
			t.Errorf("no %s among the events", wanted)
			continue
		}
		e := events[i]
		if wanted == "+switch-master" && (e.Address == e.Master || e.Address == "" || e.Elapsed <= 0 || e.Epoch == 0) {
			t.Errorf("event = %+v", e)
		}
	}
}

func TestWatcher_SurvivesTheLossOfSentinelsAndMaster(t *testing.T) {
	t.Parallel()
	certs := redistest.NewCertificates(t)
	d := deploy(t, topology.Config{Secrets: topology.NewSecrets(), TLS: &topology.TLS{
		CAFile: certs.CAFile, ServerCertFile: certs.ServerCertFile, ServerKeyFile: certs.ServerKeyFile,
		ClientCertFile: certs.ClientCertFile, ClientKeyFile: certs.ClientKeyFile,
	}})
	d.watch(sentinel.Config{Sentinels: redisstore.Access{
		TLS: true, CAFile: certs.CAFile, CertFile: certs.ClientCertFile, KeyFile: certs.ClientKeyFile,
	}})
	// The account of deploy/redis may ask all that is asked.
	d.await("everything is told", func(s sentinel.Stats) bool { return s.Quorum.OK && s.HealthyReplicas() == 2 })
	for _, one := range d.Stats().Sentinels {
		if one.LastError != "" {
			t.Errorf("%s: %s", one.Address, one.LastError)
		}
	}
	first := d.master().Addr()

	again := d.Sentinels()[0]
	must(t, again.Kill())
	d.watched(2)
	must(t, again.Restart(t.Context()))
	d.watched(3)

	d.failsOver("kill of the master", (*topology.Node).Kill)
	d.healthy()

	last := d.resolve()
	must(t, d.Sentinels()[1].Kill(), d.Sentinels()[2].Kill())
	d.await("the last Sentinel finds no quorum", func(s sentinel.Stats) bool {
		return s.Reachable == 1 && !s.Quorum.OK && s.Quorum.Text != ""
	})
	must(t, again.Kill())
	d.await("nobody answers", func(s sentinel.Stats) bool { return s.Reachable == 0 })
	if got := d.resolve(); got != last || got == first {
		t.Errorf("Resolve = %s, want the last known master %s", got, last)
	}
}
