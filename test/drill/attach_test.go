package drill_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill"
	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/load"
	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/topology"
)

// patience is how long a condition may take to come true that needs seconds.
const patience = time.Minute

const somebodysPolicies = `domain: somebody
policies:
  - endpoint_id: theirs
    descriptor: [{key: endpoint_id, value: theirs}]
    token_bucket: {rate: 100000/s, burst: 100000}
    fail_mode: fail_closed
    policy_version: 1
`

// Attached to somebody's own deployment, a drill sees the same moments. Their service answers 503s as gRPC errors, which
// carry no reason.
func TestAttach_SeesAFailoverOfSomebodyElse(t *testing.T) {
	set, err := topology.StartSentinel(t.Context(), topology.Config{
		Dir: t.TempDir(), DownAfter: 1500 * time.Millisecond, FailoverTimeout: 3 * time.Second,
		Secrets: topology.NewSecrets(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	service, admin := serve(t, set)
	seeds, err := redisstore.ParseSeeds(set.URL())
	if err != nil {
		t.Fatal(err)
	}
	operator := set.OperatorLogin()
	access := redisstore.Access{Username: operator.Username, Password: redisstore.Secret(operator.Password)}
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
	defer cancel() // the end of a look is no error
	report, err := drill.Attach(ctx, drill.AttachConfig{
		Master: seeds.Master, Addresses: seeds.Addresses, Data: access, Sentinels: access, Before: 2 * time.Second,
		Service: service, Admin: admin, Domain: "somebody", Rate: 200, Margin: margin,
		Descriptors: [][]load.Entry{{{Key: "endpoint_id", Value: "theirs"}}},
		Inject:      func(context.Context) error { return set.Node("redis-0").Kill() },
	})
	if err != nil {
		t.Fatal(err)
	}
	m := report.Marks
	for name, moment := range map[string]journal.Moment{
		"T0": m.Fault, "T1": m.SDown, "T2": m.ODown, "T3": m.Leader, "T4": m.Promoted, "SW": m.Switch, "T5": m.Decided,
	} {
		if !moment.Happened {
			t.Errorf("%s was never seen", name)
		}
	}
	if report.Phases[1].Reasons[journal.DeniedWithoutReason] == 0 {
		t.Errorf("reasons of the outage = %v, want some %s", report.Phases[1].Reasons, journal.DeniedWithoutReason)
	}
	if !report.Passed || len(report.Votes) == 0 || len(report.Connects) != 3 {
		t.Errorf("passed %v (%+v), %d votes, %d nodes: want true, some, and 3", report.Passed, report.Checks,
			len(report.Votes), len(report.Connects))
	}
}

// serve is somebody's service; it returns its gRPC and admin addresses.
func serve(t *testing.T, set *topology.Sentinel) (service, admin string) {
	t.Helper()
	addrs, err := process.FreeAddresses(2)
	if err != nil {
		t.Fatal(err)
	}
	policies := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(policies, []byte(somebodysPolicies), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(process.Config{
		Path: program, Args: []string{
			"serve", "--policies", policies, "--grpc", addrs[0], "--admin", addrs[1], "--drain-delay", "0s",
			"--redis", set.URL(), "--redis-username", set.ServiceLogin().Username,
			"--sentinel-username", set.SentinelLogin().Username,
		},
		Env: []string{
			"RATELIMIT_REDIS_PASSWORD=" + set.ServiceLogin().Password,
			"RATELIMIT_SENTINEL_PASSWORD=" + set.SentinelLogin().Password,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.AwaitReady(ctx, process.HTTPOK("http://"+addrs[1]+"/readyz")); err != nil {
		t.Fatal(err)
	}
	return addrs[0], addrs[1]
}

// Ctrl-C in the middle of a drill ends everything that the drill has started, and is told in the exit code.
func TestCommand_LeavesNothingRunningWhenInterrupted(t *testing.T) {
	p, err := process.Start(process.Config{
		Path: program, Args: []string{"drill", "master-exit", "--evidence", t.TempDir()}, Grace: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.AwaitReady(ctx, func(context.Context) error {
		if !strings.Contains(p.Tail(), "offering") {
			return errors.New("no load yet")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	started := children(t, p.PID())
	if len(started) != 7 {
		t.Fatalf("%d processes run, want 3 data nodes, 3 Sentinels and the service", len(started))
	}
	if err := p.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		t.Fatal("the drill does not end")
	}
	if !strings.Contains(p.Tail(), "stopped early") || !strings.Contains(p.Exited().Error(), "exit status 1") {
		t.Errorf("it ended with %v", p.Exited())
	}
	for _, pid := range started {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d still runs (%v)", pid, err)
		}
	}
}

// children are the processes that one has started and that have not ended.
func children(t *testing.T, parent int) []int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, pid)
		}
	}
	return all
}
