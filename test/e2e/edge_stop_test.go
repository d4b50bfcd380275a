package e2e_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/internal/redistest"
)

// traffic is a steady stream of requests to both endpoints, each answer of which is looked at.
type traffic struct {
	stop    chan struct{}
	workers sync.WaitGroup

	decided, undecided map[string]*atomic.Int64 // answers by endpoint
}

// flow starts the traffic, which the test's Cleanup ends if nobody else does.
func (m *mesh) flow(t *testing.T) *traffic {
	t.Helper()
	f := &traffic{
		stop: make(chan struct{}), decided: map[string]*atomic.Int64{}, undecided: map[string]*atomic.Int64{},
	}
	for _, e := range endpoints {
		f.decided[e.id], f.undecided[e.id] = new(atomic.Int64), new(atomic.Int64)
		for range 2 {
			f.workers.Go(func() { f.work(t, m, e) })
		}
	}
	t.Cleanup(f.end)
	return f
}

// work asks until the traffic ends, at a pace that leaves a small machine some time for the others.
func (f *traffic) work(t *testing.T, m *mesh, e endpoint) {
	pace := time.NewTicker(4 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-pace.C:
		}
		got, took, err := m.send(t.Context(), m.newPath(e), question{})
		if err != nil {
			t.Errorf("%s: no answer after %v: %v", e.id, took, err)
			return
		}
		if took > atMost {
			t.Errorf("%s was answered after %v, want within %v", e.id, took, atMost)
		}
		f.note(t, e, got)
	}
}

// note counts an answer, which must be one of those that the client of e may see. Only the service tells of limits.
func (f *traffic) note(t *testing.T, e endpoint, got seen) {
	if got.Limit.Limit != "" {
		f.decided[e.id].Add(1)
		want := allowed(e, got.Limit)
		want.Reached, want.Proof, want.Counted = false, proof{}, nil // not looked at here
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, decided (-want +got):\n%s", e.id, diff)
		}
		return
	}
	f.undecided[e.id].Add(1)
	for _, want := range map[string][]seen{
		pdftalk.id: {refusedUndecided()}, resumint.id: {passedUndecided(e), meteredUndecided()},
	}[e.id] {
		want.Reached, want.Proof = false, proof{}
		if cmp.Equal(want, got) {
			return
		}
	}
	t.Errorf("%s, undecided: %+v", e.id, got)
}

// await waits until each endpoint has had that many more answers of the counted kind.
func (f *traffic) await(t *testing.T, what string, kind map[string]*atomic.Int64, more int64) {
	t.Helper()
	want := map[string]int64{}
	for id, n := range kind {
		want[id] = n.Load() + more
	}
	redistest.Eventually(t, what, func() bool {
		for id, n := range kind {
			if n.Load() < want[id] {
				return false
			}
		}
		return true
	})
}

func (f *traffic) end() {
	select {
	case <-f.stop:
	default:
		close(f.stop)
	}
	f.workers.Wait()
}

func sumOf(kind map[string]*atomic.Int64) (n int) {
	for _, c := range kind {
		n += int(c.Load())
	}
	return n
}

// A service that is told to stop goes on deciding until Envoy has noticed, and every decision reaches its client. From
// then on nobody decides, which each endpoint takes as if the service were dead, and nothing hangs.
func TestServiceTerminated(t *testing.T) {
	m := newMesh(t, meshConfig{})
	// A delay that only a second signal ends.
	s := m.serveMortal(t, "--drain-delay", "1h")
	m.awaitHealthy(t)
	before, turned := s.metrics(t).sum(decisionsTotal), m.stat(t, turnedAway)
	f := m.flow(t)
	f.await(t, "decisions", f.decided, 20)
	if err := s.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.awaitLog(t, line{"message": "draining"})
	drained := sumOf(f.decided)
	redistest.Eventually(t, "Envoy to notice", func() bool { return m.stat(t, healthyReplicas) == 0 })
	f.await(t, "answers without the service", f.undecided, 20)
	f.end()
	if sumOf(f.decided) == drained {
		t.Error("nothing was decided from the signal until Envoy noticed")
	}
	if made, heard := int(s.metrics(t).sum(decisionsTotal)-before), sumOf(f.decided); made != heard {
		t.Errorf("the service made %d decisions, clients heard of %d", made, heard)
	}
	// None of these was lost on a broken connection.
	if got, want := sumOf(f.undecided), m.stat(t, turnedAway)-turned; got != want {
		t.Errorf("%d requests were not decided, Envoy knew of no healthy service for %d", got, want)
	}
	if err := s.process.Exited(); err != nil {
		t.Errorf("the service did not wait: %v", err)
	}
	if err := s.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.awaitExit(t)
	s.awaitLog(t, line{"message": "stopped"})
	m.checkUndecided(t)
}

// Of two replicas one is told to stop under load: no request is lost, left undecided or charged twice.
func TestReplicaTerminated(t *testing.T) {
	addrs, err := process.FreeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	const one = "{endpoint: {address: {socket_address: $SERVICE}}}"
	other := strings.Replace(one, "$SERVICE", socketAddress(addrs[0]), 1)
	m := newMesh(t, meshConfig{
		Policies: strings.Replace(roomy, "window: 60s", "window: 24h", 1), Edits: []edit{{one, one + ", " + other}},
	})
	st := newStore(t, m.secrets)
	// The budget is large, so that no hiccup of the store is taken for a request that got lost.
	flags := append(st.at(st.URL()), "--policies", m.policies, "--budget", "200ms")
	leaving := startMortal(t, m.grpc, m.secrets, append(flags, "--drain-delay", "3s")...)
	m.service = startService(t, addrs[0], m.secrets, flags...)
	redistest.Eventually(t, "Envoy to find both replicas", func() bool { return m.stat(t, healthyReplicas) == 2 })
	m.awaitHealthy(t)
	left, said := m.left(t, m.tenant), len(m.accessLog.text())
	f := m.flow(t)
	for _, s := range []*service{leaving, m.service} {
		s.awaitMetric(t, 10, decisionsTotal)
	}
	if err := leaving.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	leaving.awaitExit(t)
	f.await(t, "decisions of the replica that stays", f.decided, 20)
	f.end()
	if n := sumOf(f.undecided); n != 0 {
		t.Errorf("%d requests were not decided, of %d", n, n+sumOf(f.decided))
		for l := range strings.Lines(m.accessLog.text()[said:]) {
			if !strings.Contains(l, "decision=ALLOWED") {
				t.Log(l)
			}
		}
	}
	want := int(f.decided[pdftalk.id].Load()) + 1
	if charged := left - m.left(t, m.tenant); charged != want {
		t.Errorf("%d requests were charged as %d", want, charged)
	}
}
