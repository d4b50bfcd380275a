package e2e_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// With --deny=over_limit the service denies without a gRPC error, and a mapper of envoy.yaml makes the 503 of it: the
// client of a dead store sees the same, before the breaker opens and after, and the access log tells why.
func TestDenyOverLimit_DeadRedis(t *testing.T) {
	for _, c := range []struct {
		name         string
		flags        []string
		closed, open string
		cause        string
	}{
		{"by the store's failure", []string{neverOpens}, failClosed, connection, "dial"},
		{"by the breaker", nil, circuit, circuit, "breaker_open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMesh(t, meshConfig{Policies: complete})
			st := newStore(t, m.secrets)
			s := m.serve(t, append(append(st.at(st.URL()), "--deny", "over_limit"), c.flags...)...)
			m.awaitAllowed(t, pdftalk)
			st.Kill()
			m.awaitCause(t, c.cause)
			for _, e := range []endpoint{pdftalk, metered} {
				got, where := m.count(t, m.by(t, e, m.newTenant(t)))
				want := unavailable(e, c.closed, c.cause)
				want.Proof, want.Decision, want.Limited = proof{c.closed, c.cause, e.id}, c.closed, "true"
				check(t, e.path, want, got)
				if where.Flags != "RL" || where.Details != "request_rate_limited" {
					t.Errorf("%s: the access log says %+v", e.path, where)
				}
			}
			got, _ := m.count(t, m.by(t, resumint, m.tenant))
			check(t, "fail_open", admittedWithoutStore(resumint, c.open, c.cause), got)
			got, _ = m.count(t, m.by(t, resumint, m.newTenant(t)))
			check(t, "fail_open, once too often", denied(resumint, c.cause, got.RetryAfter), got)
			s.awaitLog(t, line{
				"message": "request denied", "endpoint_id": pdftalk.id, "reason": c.closed, "answer": "unavailable",
			})
		})
	}
}

// grpcAnswer is what a gRPC client sees of an answer that Envoy makes: always 200, and the status in headers.
type grpcAnswer struct {
	HTTP            int
	Status, Message string
}

// A gRPC client can tell a limit that it has reached from a limiter that is not there, unless --deny=over_limit makes
// one of both.
func TestDeny_ForGRPCClients(t *testing.T) {
	const exhausted, gone = "8", "14" // RESOURCE_EXHAUSTED, UNAVAILABLE
	for mode, want := range map[string]string{"grpc_error": gone, "over_limit": exhausted} {
		t.Run(mode, func(t *testing.T) {
			m := newMesh(t, meshConfig{Policies: complete})
			st := newStore(t, m.secrets)
			m.serve(t, append(st.at(st.URL()), neverOpens, "--deny", mode)...)
			m.awaitAllowed(t, pdftalk)
			tenant := m.newTenant(t)
			m.checkGRPC(t, "too dear", m.as(t, tenant, "x-pages", "501"), grpcAnswer{200, exhausted, bodyLimited})
			st.Kill()
			m.awaitCause(t, "dial")
			m.checkGRPC(t, "no store", m.as(t, tenant), grpcAnswer{200, want, bodyUnavailable})
		})
	}
}

func (m *mesh) checkGRPC(t *testing.T, what string, headers []string, want grpcAnswer) {
	t.Helper()
	got, _, h := m.run(t, errand{Path: pdftalk.path, Headers: append(headers, "content-type", "application/grpc")})
	seen := grpcAnswer{got.Status, h.Get("grpc-status"), unescaped(t, h)}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("%s, a gRPC client (-want +got):\n%s", what, diff)
	}
	if got.Reached {
		t.Errorf("%s: the backend was called", what)
	}
}

// unescaped is the message, of which gRPC escapes some characters as a URL does.
func unescaped(t *testing.T, h http.Header) string {
	t.Helper()
	text, err := url.PathUnescape(h.Get("grpc-message"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
