package e2e_test

import (
	"strings"
	"testing"

	"github.com/honestlimit/ratelimit/internal/redistest"
)

// complete is a policy file that governs every route of envoy.yaml, with numbers that come out whole.
const complete = `
domain: mesh
policies:
  - endpoint_id: pdftalk.ingest
    descriptor: [{key: endpoint_id, value: pdftalk.ingest}, {key: tenant}]
    sliding_window: {limit: 1000, window: 1h}
    max_cost: 500
    fail_mode: fail_closed
  - endpoint_id: resumint.tailor
    descriptor: [{key: endpoint_id, value: resumint.tailor}, {key: tenant}]
    token_bucket: {rate: 1/min, burst: 3}
    fail_mode: fail_open
    fallback_rate_per_process: 1/min
  - endpoint_id: default
    descriptor: [{key: endpoint_id, value: default}]
    token_bucket: {rate: 1/day, burst: 100}
    fail_mode: fail_closed
`

// metered is forgotten where the policies know of it.
var metered = endpoint{id: "default", service: forgotten.service, path: forgotten.path, body: forgotten.body}

// serveMortal is serve for a service whose end is the test's own affair.
func (m *mesh) serveMortal(t *testing.T, flags ...string) *service {
	t.Helper()
	m.service = startMortal(t, m.grpc, m.secrets, append([]string{"--policies", m.policies}, flags...)...)
	m.awaitDecided(t)
	return m.service
}

// startMortal is startService for a service whose end is the test's own affair.
func startMortal(t *testing.T, grpc string, secrets *secrets, flags ...string) *service {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s := &service{log: &journal{}, secrets: secrets}
	s.run(t, path, grpc, flags)
	t.Cleanup(func() {
		if err := s.process.Stop(); err != nil {
			t.Error(err)
		}
		s.secrets.search(t, "the service: the log", s.log.text())
		if strings.Contains(s.log.text(), "panic:") {
			t.Error("the service's log tells of a panic")
		}
		if t.Failed() {
			t.Logf("the service's log ends with:\n%s", s.log.tail(40))
		}
	})
	if err := s.awaitReady(t); err != nil {
		t.Fatal(err)
	}
	return s
}

// awaitExit waits until the service has ended by itself, and checks that it calls that a success.
func (s *service) awaitExit(t *testing.T) {
	t.Helper()
	redistest.Eventually(t, "the service to end", func() bool { return s.process.Exited() != nil })
	if err := s.process.Exited(); !strings.Contains(err.Error(), "exit status 0") {
		t.Errorf("the service ended badly: %v", err)
	}
}
