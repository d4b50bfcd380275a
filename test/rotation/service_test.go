package rotation_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/load"
	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/internal/topology"
)

// policies never deny, so that whatever is not an OK is a failure; and the endpoint fails open, so that not even one of
// these may be.
const policies = `domain: mesh
policies:
  - endpoint_id: steady
    descriptor: [{key: tenant}]
    token_bucket: {rate: 100000/s}
    fail_mode: fail_open
    fallback_rate_per_process: 100000/s
`

// service is the product, and a steady load on it.
type service struct {
	process *process.Process
	grpc    string
	log     syncBuffer

	mu      sync.Mutex
	answers map[answer]int // since they were taken
	streak  int            // how many of the newest were allowed by Redis
}

type answer struct{ answer, reason string }

// allowed is the answer of a request that Redis has admitted.
var allowed = answer{"OK", "ALLOWED"}

func startService(t *testing.T, set *topology.Sentinel, passwords string) *service {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "mesh.yaml")
	if err := os.WriteFile(file, []byte(policies), 0o600); err != nil {
		t.Fatal(err)
	}
	addrs, err := process.FreeAddresses(2)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{grpc: addrs[0], answers: map[answer]int{}}
	s.process, err = process.Start(process.Config{
		Name: "the service", Path: build(t, dir), Stdout: &s.log, Stderr: &s.log,
		Args: []string{
			"serve", "--grpc", addrs[0], "--admin", addrs[1], "--policies", file, "--drain-delay", "0s",
			// A test shares its machine: what a busy moment delays is no failure of a rotation.
			"--budget", "200ms",
			"--redis", set.URL(), "--redis-username", "ratelimit", "--sentinel-username", "ratelimit",
			"--redis-password-file", filepath.Join(passwords, "redis"),
			"--sentinel-password-file", filepath.Join(passwords, "sentinel"),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.process.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the service's log:\n%s", s.log.String())
		}
	})
	await(t, "the service", process.HTTPOK("http://"+addrs[1]+"/readyz"))
	return s
}

func build(t *testing.T, dir string) string {
	t.Helper()
	root, err := process.Root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "ratelimit")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./cmd/ratelimit")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the service: %v\n%s", err, out)
	}
	return path
}

// load sends 100 requests a second until the test ends.
func (s *service) load(t *testing.T) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan error)
	go func() {
		_, err := load.Run(context.WithoutCancel(t.Context()), load.Config{
			Target: s.grpc, Domain: "mesh", Descriptors: [][]load.Entry{{{Key: "tenant", Value: load.KeyPlaceholder}}},
			Keys: 50, Rate: 100, Duration: time.Hour, Stop: stop, OnAnswer: s.count,
		})
		done <- err
	}()
	t.Cleanup(func() {
		close(stop)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (s *service) count(o load.Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := answer{o.Answer, o.Reason}
	s.answers[a]++
	s.streak++
	if a != allowed {
		s.streak = 0
	}
}

// awaitAllowed waits until Redis has admitted 50 requests in a row from now on.
func (s *service) awaitAllowed(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	s.streak = 0
	s.mu.Unlock()
	await(t, "Redis to decide", func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.streak < 50 {
			return fmt.Errorf("answers so far: %v", s.answers)
		}
		return nil
	})
}

// take returns the answers since the last call.
func (s *service) take() map[answer]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := maps.Clone(s.answers)
	clear(s.answers)
	return taken
}

// onlyAllowed checks that Redis has admitted every request since the last look, and some more.
func (s *service) onlyAllowed(t *testing.T, during string) {
	t.Helper()
	s.awaitAllowed(t)
	taken := s.take()
	if len(taken) != 1 || taken[allowed] == 0 {
		t.Errorf("%s: answers %v, want nothing but %v", during, taken, allowed)
	}
}

// onlyExplained waits until Redis decides again, and checks that meanwhile every request was answered, as the endpoint's
// fail mode has it.
func (s *service) onlyExplained(t *testing.T, during string) {
	t.Helper()
	s.awaitAllowed(t)
	taken := s.take()
	t.Logf("%s: answers %v", during, taken)
	for a := range taken {
		if a.answer != "OK" || !explanations[a.reason] {
			t.Errorf("%s: answers %v, want OK for one of the reasons %v", during, taken, explanations)
		}
	}
}

// explanations are the reasons for which a request to an endpoint that fails open passes.
var explanations = map[string]bool{
	"ALLOWED": true, "CIRCUIT_OPEN": true, "REDIS_TIMEOUT": true, "REDIS_CONNECTION_ERROR": true,
	"REDIS_NOSCRIPT_RETRY": true,
}

// syncBuffer is a bytes.Buffer for a process to write to while a test reads.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.TrimSpace(b.buf.String())
}
