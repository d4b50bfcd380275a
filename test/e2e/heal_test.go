package e2e_test

import (
	"testing"

	"github.com/honestlimit/ratelimit/internal/redistest"
)

// awaitCause asks the fail_closed endpoint until the store's absence shows as cause.
func (m *mesh) awaitCause(t *testing.T, cause string) {
	t.Helper()
	redistest.Eventually(t, "the cause to be "+cause, func() bool {
		got := m.watch(t, pdftalk, question{})
		return got.Counted.sum(decisionsTotal, `cause="`+cause+`"`) == 1
	})
}

// A service that starts without its store is ready, applies its table, and finds the store when it comes.
func TestRedisArrivesLate(t *testing.T) {
	for _, c := range []struct {
		name          string
		flags         []string
		open, closed  string
		cause         string
		breakersMoves float64
	}{
		{"with the breaker out of the way", []string{neverOpens}, connection, failClosed, "dial", 0},
		{"with the breaker", nil, circuit, circuit, "breaker_open", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMesh(t, meshConfig{})
			st := newStore(t, m.secrets)
			st.Kill()
			s := m.serve(t, append(st.at(st.URL()), c.flags...)...)
			m.awaitCause(t, c.cause)
			check(t, "fail_closed", unavailable(pdftalk, c.closed, c.cause), m.watch(t, pdftalk, question{}))
			check(t, "fail_open", admittedWithoutStore(resumint, c.open, c.cause), m.watch(t, resumint, question{}))
			st.Restart()
			m.awaitHealthy(t)
			if got := s.metrics(t).sum("ratelimit_breaker_transitions_total"); got < c.breakersMoves {
				t.Errorf("the breaker moved %v times, want at least %v", got, c.breakersMoves)
			}
		})
	}
}

// The password is changed in Redis first, which hangs up, and then in the file: the service follows by itself.
func TestPasswordRotated(t *testing.T) {
	m := newMesh(t, meshConfig{})
	st := newStore(t, m.secrets)
	m.serve(t, append(st.at(st.URL()), neverOpens)...)
	m.awaitHealthy(t)
	next := m.secrets.keep("rotated-" + st.password)
	st.doing(t, "ACL SETUSER "+user+" resetpass >"+next, "CLIENT KILL USER "+user)()
	m.awaitCause(t, "auth")
	check(t, "fail_closed", unavailable(pdftalk, failClosed, "auth"), m.watch(t, pdftalk, question{}))
	check(t, "fail_open", admittedWithoutStore(resumint, connection, "auth"), m.watch(t, resumint, question{}))
	writeFile(t, st.passwordFile, next+"\n")
	m.awaitHealthy(t)
}

// Both passwords are good while the file is changed: nobody notices, although every connection is replaced.
func TestPasswordRotated_Unnoticed(t *testing.T) {
	m := newMesh(t, meshConfig{})
	st := newStore(t, m.secrets)
	s := m.serve(t, st.at(st.URL())...)
	m.awaitHealthy(t)
	next := m.secrets.keep("rotated-" + st.password)
	st.do(t, "ACL", "SETUSER", user, ">"+next)
	writeFile(t, st.passwordFile, next)
	before := s.metrics(t).sum("ratelimit_store_dials_total", `cause="none"`)
	st.do(t, "ACL", "SETUSER", user, "<"+st.password)
	st.do(t, "CLIENT", "KILL", "USER", user)
	s.awaitMetric(t, before+2, "ratelimit_store_dials_total", `cause="none"`)
	if failed := s.metrics(t).sum("ratelimit_store_dials_total", `cause="auth"`); failed != 0 {
		t.Errorf("%v dials were refused, want none", failed)
	}
	m.awaitHealthy(t)
}
