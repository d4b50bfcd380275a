package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/internal/redistest"
)

// service is one run of the product, which the test's Cleanup ends. Its log, and what it tells on its admin port, are
// then searched for what must never be in them.
type service struct {
	process *process.Process
	log     *journal
	admin   string
	secrets *secrets
}

// startService runs the product so that Envoy finds it at grpc, and waits until it is ready.
func startService(t *testing.T, grpc string, secrets *secrets, flags ...string) *service {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	for {
		s := &service{log: &journal{}, secrets: secrets}
		s.run(t, path, grpc, flags)
		err := s.awaitReady(t)
		if err == nil {
			t.Cleanup(func() { s.end(t) })
			return s
		}
		// While nobody listens on a port, the kernel may give it to a connection for a moment.
		if !errors.Is(err, process.ErrExited) || !strings.Contains(s.log.text(), "address already in use") {
			t.Fatal(err)
		}
	}
}

func (s *service) run(t *testing.T, path, grpc string, flags []string) {
	t.Helper()
	addrs, err := process.FreeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	s.admin = "http://" + addrs[0]
	args := []string{
		"serve", "--grpc", grpc, "--admin", addrs[0], "--log-format", "json", "--log-level", "debug",
		"--drain-delay", "0s",
	}
	s.process, err = process.Start(process.Config{
		Name: "the service", Path: path, Args: append(args, flags...), Stdout: s.log, Stderr: s.log,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *service) awaitReady(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	return s.process.AwaitReady(ctx, process.HTTPOK(s.admin+"/readyz"))
}

// end stops the service and searches what it said.
func (s *service) end(t *testing.T) {
	t.Helper()
	told := map[string]string{}
	if err := s.process.Exited(); err != nil {
		t.Error(err)
	} else {
		for _, page := range []string{"/metrics", "/state", "/policies"} {
			told[page] = fetch(t, s.admin+page)
		}
	}
	if err := s.process.Stop(); err != nil {
		t.Error(err)
	}
	told["the log"] = s.log.text()
	if strings.Contains(strings.ToLower(told["the log"]), "panic:") {
		t.Error("the service's log tells of a panic")
	}
	for where, text := range told {
		s.secrets.search(t, "the service: "+where, text)
	}
	if t.Failed() {
		t.Logf("the service's log ends with:\n%s", s.log.tail(80))
	}
}

// metrics are the samples that the service exports now.
func (s *service) metrics(t *testing.T) counts {
	t.Helper()
	c, err := parseMetrics(fetch(t, s.admin+"/metrics"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// awaitLog waits until the service has logged a line with these fields.
func (s *service) awaitLog(t *testing.T, want line) line {
	t.Helper()
	var found line
	redistest.Eventually(t, fmt.Sprintf("a line of the log with %v", want), func() bool {
		var ok bool
		found, ok = s.log.find(want)
		return ok
	})
	return found
}

// awaitMetric waits until the metric's samples with these labels add up to at least most.
func (s *service) awaitMetric(t *testing.T, least float64, name string, labels ...string) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("%s%v to reach %v", name, labels, least), func() bool {
		return s.metrics(t).sum(name, labels...) >= least
	})
}

// connected is the number of connections to the store that serve.
func (s *service) connected(t *testing.T) float64 {
	t.Helper()
	n, ok := s.metrics(t)["ratelimit_store_lanes_connected"]
	if !ok {
		t.Fatal("the service does not tell how many lanes are connected")
	}
	return n
}

// secrets are texts that no log and no metric may ever show.
// It is safe for concurrent use.
type secrets struct {
	mu    sync.Mutex
	texts []string
}

// keep adds a secret and returns it.
func (s *secrets) keep(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, text)
	return text
}

func (s *secrets) search(t *testing.T, where, text string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, secret := range s.texts {
		if strings.Contains(text, secret) {
			t.Errorf("%s shows the secret %q", where, secret)
		}
	}
}

// writeFile writes text to a new file of the test, or over an old one at once, as a careful editor would.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	next := path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

// writePolicies writes a policy file in a directory of its own.
func writePolicies(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mesh.yaml")
	writeFile(t, path, text)
	return path
}

// deadline bounds waits that a healthy machine ends in milliseconds.
func deadline(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), redistest.Patience)
}
