package e2e_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// crowd makes n requests of e at once. While no store decides they must all come to what the table says; which of its
// rows, clients cannot tell. It returns how long each took.
func (m *mesh) crowd(t *testing.T, e endpoint, n int) []time.Duration {
	t.Helper()
	want := admittedWithoutStore(e, "", "")
	if e == pdftalk {
		want = unavailable(e, "", "")
	}
	want.Reached, want.Proof, want.Counted = false, proof{}, nil // not looked at: requests are not told apart
	answers, took := m.rush(t, e, n)
	for _, got := range answers {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, one of a crowd (-want +got):\n%s", e.id, diff)
		}
	}
	return took
}

// rush makes n requests of e at once, and returns what their clients see, and after how long.
func (m *mesh) rush(t *testing.T, e endpoint, n int) ([]seen, []time.Duration) {
	t.Helper()
	answers, took := make([]seen, n), make([]time.Duration, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			var err error
			if answers[i], took[i], err = m.send(t.Context(), m.newPath(e), question{}); err != nil {
				t.Errorf("%s: %v", e.id, err)
			}
		})
	}
	all.Wait()
	return answers, took
}

// 200 requests at once find a frozen Redis: all are answered as the table says, about when the budget ends.
func TestCrowd_OnFrozenRedis(t *testing.T) {
	const (
		people = 200
		// The budget is 20 ms; 200 requests through Envoy and back take some time of their own. The bounds leave a
		// machine that is busy with something else many times as much.
		median = 250 * time.Millisecond
		last   = time.Second
	)
	m := newMesh(t, meshConfig{Patience: "0.900s"})
	st := newStore(t, m.secrets)
	s := m.serve(t, append(st.at(st.URL()), neverOpens)...)
	m.awaitHealthy(t)
	for _, e := range endpoints {
		m.rush(t, e, people) // opens the connections, to Envoy and from it
	}
	st.Freeze()
	for _, e := range endpoints {
		before := s.metrics(t)
		took := m.crowd(t, e, people)
		slices.Sort(took)
		t.Logf("%s: %d requests on a frozen Redis: fastest %v, median %v, slowest %v",
			e.id, people, took[0], took[people/2], took[people-1])
		if got := took[people/2]; got > median {
			t.Errorf("%s: the median took %v, want at most %v", e.id, got, median)
		}
		if got := took[people-1]; got > last {
			t.Errorf("%s: the slowest took %v, want at most %v", e.id, got, last)
		}
		after := s.metrics(t)
		if got := after.sum(decisionsTotal) - before.sum(decisionsTotal); got != people {
			t.Errorf("%s: %v decisions counted, want %d", e.id, got, people)
		}
		// What Envoy and the client add is not in the service's own measure.
		const within = `ratelimit_decision_seconds_bucket`
		if got := after.sum(within, `le="0.05"`) - before.sum(within, `le="0.05"`); got < people/2 {
			t.Errorf("%s: %v of %d decisions took at most 50ms in the service, want half", e.id, got, people)
		}
	}
	st.Thaw()
	m.awaitHealthy(t)
}

// What is more than the service may hold at once is answered at once, as if the store had timed out.
func TestCrowd_IsShed(t *testing.T) {
	m := newMesh(t, meshConfig{})
	st := newStore(t, m.secrets)
	s := m.serve(t, append(st.at(st.URL()), neverOpens, "--max-in-flight", "1")...)
	m.awaitHealthy(t)
	st.Freeze()
	for e, want := range map[endpoint]string{
		pdftalk:  decided(pdftalk.id, failClosed, "overload", "unavailable"),
		resumint: decided(resumint.id, timeout, "overload", "ok"),
	} {
		before := s.metrics(t)
		m.crowd(t, e, 8)
		if got := s.metrics(t).since(before, decisionsTotal); got[want] == 0 {
			t.Errorf("%s: counted %v, want some of %s", e.id, got, want)
			continue
		}
		proved.add(counts{want: 1})
	}
	st.Thaw()
	m.awaitHealthy(t)
}
