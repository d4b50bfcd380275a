package topology_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long these tests wait for what takes seconds. Only a broken test reaches it.
const patience = time.Minute

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func await(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	if err := process.Await(within(t), what, check); err != nil {
		t.Fatal(err)
	}
}

// refused checks that err is an answer of that kind.
func refused(err error, kind string) error {
	if err == nil {
		return errors.New("it is accepted")
	}
	if !strings.HasPrefix(err.Error(), kind) {
		return fmt.Errorf("want %s, not %w", kind, err)
	}
	return nil
}

func TestTopologies_StartHealthyInEveryDress(t *testing.T) {
	t.Parallel()
	certs := redistest.NewCertificates(t)
	secure := &topology.TLS{
		CAFile: certs.CAFile, ServerCertFile: certs.ServerCertFile, ServerKeyFile: certs.ServerKeyFile,
		ClientCertFile: certs.ClientCertFile, ClientKeyFile: certs.ClientKeyFile,
	}
	for name, cfg := range map[string]topology.Config{
		"plain":                   {},
		"gated":                   {Gated: true},
		"accounts":                {Secrets: topology.NewSecrets()},
		"gated, tls and accounts": {Gated: true, TLS: secure, Secrets: topology.NewSecrets()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := within(t)
			if err := redistest.Sentinel(t, cfg).Healthy(ctx); err != nil {
				t.Errorf("sentinel: %v", err)
			}
			if err := redistest.Cluster(t, cfg).Healthy(ctx); err != nil {
				t.Errorf("cluster: %v", err)
			}
			alone := cfg
			alone.Dir = t.TempDir()
			s, err := topology.StartStandalone(ctx, alone)
			if err != nil {
				t.Fatalf("standalone: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("standalone: close: %v", err)
			}
		})
	}
}

func TestSet_CloseEndsEveryProcess(t *testing.T) {
	t.Parallel()
	s := redistest.Sentinel(t, topology.Config{Gated: true})
	if err := s.Node("redis-1").Freeze(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range s.Nodes() {
		if n.Running() || !process.IsFree(n.Direct()) || !process.IsFree(n.Addr()) {
			t.Errorf("%s is still there", n.Name())
		}
	}
	if err := s.Node("redis-0").Restart(within(t)); err == nil {
		t.Error("a node of a closed set starts")
	}
}

func TestSet_CancelledStartLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// A quorum that cannot be found keeps the start waiting.
	done := make(chan error, 1)
	go func() {
		_, err := topology.StartSentinel(ctx, topology.Config{Dir: dir, Quorum: 7})
		done <- err
	}()
	await(t, "the last node", func(context.Context) error {
		_, err := os.Stat(filepath.Join(dir, "sentinel-2.log"))
		return err
	})
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("start = %v, want an error of the context", err)
	}
	if left := processesOf(t, dir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

func TestSet_SickOnPurpose(t *testing.T) {
	t.Parallel()
	s := redistest.Sentinel(t, topology.Config{
		Sentinels: 1, Quorum: 2, Replicas: 1, Unchecked: true,
		RedisLines: []string{"maxmemory-policy noeviction"},
		NodeLines:  map[string][]string{"redis-1": {"replica-priority 0"}},
	})
	if err := s.Healthy(within(t)); err == nil {
		t.Error("one Sentinel finds a quorum of two")
	}
	for node, want := range map[string]map[string]string{
		"redis-0": {"maxmemory-policy": "noeviction", "replica-priority": "100", "min-replicas-to-write": "0"},
		"redis-1": {"maxmemory-policy": "noeviction", "replica-priority": "0"},
	} {
		for name, value := range want {
			got := s.Node(node).Client().ConfigGet(within(t), name).Val()[name]
			if got != value {
				t.Errorf("%s: %s is %s, want %s", node, name, got, value)
			}
		}
	}
}

func TestConfig_ValidateNamesAllFaults(t *testing.T) {
	t.Parallel()
	err := topology.Config{Replicas: -2, DownAfter: time.Microsecond, NodeTimeout: -time.Second}.Validate()
	for _, want := range []string{"directory", "replicas", "down-after", "node timeout"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate = %v, want it to name %s", err, want)
		}
	}
	if err := (topology.Config{Dir: "d"}).Validate(); err != nil {
		t.Errorf("Validate of the defaults = %v", err)
	}
}

// processesOf are the command lines that name the directory.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(line), dir) { // else it has ended meanwhile
			found = append(found, string(line))
		}
	}
	return found
}
