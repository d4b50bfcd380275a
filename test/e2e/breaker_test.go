package e2e_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/redistest"
)

// While the breaker is half open one request at a time asks the store; for the others it is still open.
func TestBreaker_HalfOpenLetsOneThrough(t *testing.T) {
	m := newMesh(t, meshConfig{})
	st := newStore(t, m.secrets)
	network := redistest.NewProxy(t, st.Network(), st.Addr())
	s := m.serve(t, append(st.at("redis://"+network.Addr()),
		"--breaker-quarantine", "100ms", "--no-breaker-early-end")...)
	m.awaitHealthy(t)
	// A store so slow keeps each probe waiting for the whole budget, and its connections.
	network.Delay(100 * time.Millisecond)
	for e, want := range map[endpoint]string{
		pdftalk:  decided(pdftalk.id, circuit, "probing", "unavailable"),
		resumint: decided(resumint.id, circuit, "probing", "ok"),
	} {
		redistest.Eventually(t, e.id+" to meet somebody else's probe", func() bool {
			before := s.metrics(t)
			m.crowd(t, e, 8)
			return s.metrics(t).since(before, decisionsTotal)[want] > 0
		})
		proved.add(counts{want: 1})
	}
	s.awaitMetric(t, 1, "ratelimit_breaker_transitions_total", `from="half_open"`, `to="open"`)
	network.Heal()
	m.awaitHealthy(t)
}

// Without early ends the breaker stays open for the whole quarantine although the store is back, and closes then.
func TestBreaker_QuarantineEnds(t *testing.T) {
	m := newMesh(t, meshConfig{})
	st := newStore(t, m.secrets)
	s := m.serve(t, append(st.at(st.URL()), "--breaker-quarantine", "3s", "--no-breaker-early-end")...)
	m.awaitHealthy(t)
	st.Freeze()
	m.askUntilOpen(t, row{closed: failClosed, cause: "deadline"})
	st.Thaw()
	// The store answers again long before the quarantine ends, which is at least 2.4 s: three tenths of a second are
	// enough to see that nobody is told.
	s.awaitMetric(t, 2, "ratelimit_store_lanes_connected")
	check(t, "fail_closed", unavailable(pdftalk, circuit, "breaker_open"), m.watch(t, pdftalk, question{}))
	check(t, "fail_open", admittedWithoutStore(resumint, circuit, "breaker_open"), m.watch(t, resumint, question{}))
	m.awaitHealthy(t)
	want := counts{
		`ratelimit_breaker_transitions_total{from="closed",to="open"}`:      1,
		`ratelimit_breaker_transitions_total{from="open",to="half_open"}`:   1,
		`ratelimit_breaker_transitions_total{from="half_open",to="closed"}`: 1,
	}
	got := s.metrics(t).since(counts{}, "ratelimit_breaker_transitions_total")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
	s.awaitLog(t, moved("closed", "open", "failures", line{"cause": "deadline"}))
	s.awaitLog(t, moved("open", "half_open", "quarantine_over", nil))
	s.awaitLog(t, moved("half_open", "closed", "success", nil))
}
