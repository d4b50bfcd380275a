package e2e_test

import (
	"slices"
	"testing"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/topology"
)

// TestMasterFailsOver loses the master under Sentinels, and goes on asking through Envoy: every answer is one of the
// decision table, fail_closed is refused and fail_open admitted meanwhile, and the next master decides without anybody
// being told.
func TestMasterFailsOver(t *testing.T) {
	for name, lose := range map[string]func(*topology.Node) error{
		"killed": (*topology.Node).Kill,
		"frozen": (*topology.Node).Freeze,
	} {
		t.Run(name, func(t *testing.T) {
			m := newMesh(t, meshConfig{})
			set := redistest.Sentinel(t, topology.Config{})
			s := m.serve(t, "--redis", set.URL())
			m.awaitHealthy(t)
			old, err := set.Master(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := lose(old); err != nil {
				t.Fatal(err)
			}
			refused, admitted := 0, 0
			redistest.Eventually(t, "the next master to decide", func() bool {
				closed, open := m.ask(t, pdftalk, question{}), m.ask(t, resumint, question{})
				refused += inTable(t, closed, 503, none) // a gRPC error has no metadata
				admitted += inTable(t, open, 200, "REDIS_TIMEOUT", "REDIS_CONNECTION_ERROR", "CIRCUIT_OPEN")
				_, moved := s.log.find(line{"message": "another master decides", "from": old.Addr()})
				return moved && closed.Proof.Decision == "ALLOWED" && open.Proof.Decision == "ALLOWED"
			})
			if refused == 0 || admitted == 0 {
				t.Errorf("%d requests were refused and %d admitted without a store: was there an outage?", refused, admitted)
			}
			t.Logf("%d requests of fail_closed were refused, %d of fail_open admitted without a store", refused, admitted)
		})
	}
}

// inTable checks that got was decided by the store, or is the one other answer that there may be. It returns 1 if it is
// the latter.
func inTable(t *testing.T, got seen, status int, decisions ...string) int {
	t.Helper()
	switch {
	case got.Status == 200 && got.Proof.Decision == "ALLOWED":
		return 0
	case got.Status == status && slices.Contains(decisions, got.Proof.Decision):
		return 1
	default:
		t.Fatalf("an answer outside the table: %+v", got)
		return 0
	}
}
