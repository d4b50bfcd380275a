package e2e_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A client that goes away is no failure of the store. Nobody hears the answer, so it costs no emergency token.
func TestClientGone(t *testing.T) {
	m := newMesh(t, meshConfig{})
	st := newStore(t, m.secrets)
	// The budget leaves the client the time to go.
	s := m.serve(t, append(st.at(st.URL()), neverOpens, "--budget", "200ms")...)
	m.awaitHealthy(t)
	st.Freeze()
	for _, e := range endpoints {
		before := s.metrics(t)
		m.goAway(t, e)
		reason := map[string]string{pdftalk.id: failClosed, resumint.id: emergencyLimit}[e.id]
		answer := map[string]string{pdftalk.id: "unavailable", resumint.id: "over_limit"}[e.id]
		s.awaitMetric(t, 1, decisionsTotal, `endpoint_id="`+e.id+`"`, `cause="canceled"`)
		want := counts{decided(e.id, reason, "canceled", answer): 1}
		got := s.metrics(t).since(before, decisionsTotal, emergencyTotal)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: counted (-want +got):\n%s", e.id, diff)
			continue
		}
		proved.add(got)
	}
	st.Thaw()
	m.awaitHealthy(t)
}

// goAway makes a request and leaves as soon as the service has it.
func (m *mesh) goAway(t *testing.T, e endpoint) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan error, 1)
	before := m.backends[e.service].Calls().Requests
	go func() {
		_, _, err := m.send(ctx, m.newPath(e), question{})
		gone <- err
	}()
	m.service.awaitMetric(t, 1, "ratelimit_decisions_in_flight")
	cancel()
	if err := <-gone; err == nil {
		t.Fatalf("%s answered before its client went", e.id)
	}
	if got := m.backends[e.service].Calls().Requests; got != before {
		t.Errorf("%s: the backend was called for a client that went before the decision", e.id)
	}
}
