package vitals_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/vitals"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	const info = "# Replication\r\nrole:master\r\nconnected_slaves:2\r\n" +
		"slave0:ip=::1,port=6380,state=online,offset=90,lag=0\r\n" +
		"slave1:ip=10.0.0.2,port=6380,state=wait_bgsave,offset=40,lag=3\r\n" +
		"master_repl_offset:100\r\n# Memory\r\nused_memory:10\r\nmaxmemory:40\r\nmem_fragmentation_ratio:1.25\r\n" +
		"sync_full:1\r\nsync_partial_ok:2\r\nsync_partial_err:3\r\nevicted_keys:4\r\nevicted_scripts:5\r\n" +
		"connected_clients:6\r\nmaxclients:7\r\ninstantaneous_ops_per_sec:8\r\ntotal_net_input_bytes:9\r\n" +
		"total_net_output_bytes:11\r\nlatest_fork_usec:12\r\nrdb_bgsave_in_progress:0\r\naof_rewrite_in_progress:1\r\n"
	want := vitals.Server{
		Replicas: 2, Online: 1, Lag: 60, LagSeconds: 3, FullSyncs: 1, PartialSyncs: 2, RefusedSyncs: 3,
		UsedMemory: 10, MaxMemory: 40, Fragmentation: 1.25, EvictedKeys: 4, EvictedScripts: 5,
		Clients: 6, MaxClients: 7, OpsPerSecond: 8, InputBytes: 9, OutputBytes: 11, LastForkMicros: 12, Saving: 1,
	}
	if diff := cmp.Diff(want, vitals.Parse(info)); diff != "" {
		t.Errorf("Parse differs (-want +got):\n%s", diff)
	}
	for _, nonsense := range []string{"", "::", "connected_slaves:x", "connected_slaves:99999999", "slave0:,=,lag=x"} {
		if s := vitals.Parse(nonsense); s.Online != 0 || s.Lag != 0 {
			t.Errorf("Parse(%q) = %+v", nonsense, s)
		}
	}
}

// TestPoller_SumsUp asks a master with a replica, one without, and a dead one.
func TestPoller_SumsUp(t *testing.T) {
	paired, alone, dead := redistest.Start(t, redistest.Config{}), redistest.Start(t, redistest.Config{
		Args: []string{"--maxmemory", "100mb"},
	}), redistest.Start(t, redistest.Config{})
	replica := redistest.Start(t, redistest.Config{})
	dead.Kill()
	host, port, _ := net.SplitHostPort(paired.Addr())
	if err := replica.Client().Do(t.Context(), "replicaof", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	p, err := vitals.New(vitals.Config{
		Masters: func() (targets []redisstore.Target) {
			for _, s := range []*redistest.Server{paired, alone, dead} {
				targets = append(targets, redisstore.Target{Network: s.Network(), Address: s.Addr()})
			}
			return targets
		},
		Interval: 10 * time.Millisecond, Timeout: redistest.Patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	redistest.Eventually(t, "the replica is counted", func() bool { s, _ := p.Latest(); return s.Replicas == 1 })
	got, failed := p.Latest()
	if got.Servers != 2 || got.Online != 0 || failed == 0 {
		t.Errorf("%d servers, the fewest replicas online are %d, %d failures; want 2, 0 and some",
			got.Servers, got.Online, failed)
	}
	if got.MemoryUse <= 0 || got.MemoryUse >= 1 || got.UsedMemory == 0 || time.Since(got.At) > redistest.Patience {
		t.Errorf("latest is %+v", got)
	}
	cancel()
	running.Wait()
}

func TestConfig_Validate(t *testing.T) {
	if _, err := vitals.New(vitals.Config{Interval: time.Second}); err == nil {
		t.Error("nobody to ask, and no error")
	}
}
