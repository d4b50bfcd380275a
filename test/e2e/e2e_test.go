// Package e2e_test proves the decision table as HTTP answers: a real Envoy with the repository's envoy.yaml, the
// service as a process of its own, and a real redis-server, or a stand-in for the states that a real one is hard to
// bring into. A test causes a fault, asks through Envoy, and compares everything that can be seen of the request:
// status, body, headers, whether the backend was called, what Envoy's access log and the service's metrics and log
// say. It knows the product only through its command line and these outputs.
//
// The files of the harness are mesh_test.go (what runs), service_test.go, journal_test.go, metrics_test.go,
// answer_test.go (one request and what is seen of it), store_test.go (stores and their faults), and of the tests in
// edge_*_test.go, which are about everything but the store, edge_mesh_test.go, edge_peer_test.go and
// edge_errand_test.go. Tests run one after the other, as a machine of two cores needs it, and wait for conditions.
package e2e_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/honestlimit/ratelimit/internal/process"
)

// workshop is the directory of what all tests share. TestMain makes and removes it.
var workshop string

// binary builds the service once for all tests and returns its path.
var binary = sync.OnceValues(buildService)

func TestMain(m *testing.M) {
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "ratelimit-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // a left-over directory in /tmp fails no test
	workshop = dir
	if code := m.Run(); code != 0 {
		return code
	}
	if flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.list").Value.String() != "" {
		return 0 // only a run of everything can tell what is missing
	}
	if missing := proved.missing(); len(missing) > 0 {
		fmt.Fprintf(os.Stderr, "e2e: every test passed, but no test asserted:\n  %s\n", strings.Join(missing, "\n  "))
		return 1
	}
	return 0
}

func buildService() (string, error) {
	root, err := process.Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(workshop, "ratelimit")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/ratelimit")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("build the service: %w", err), errors.New(string(out)))
	}
	return path, nil
}
