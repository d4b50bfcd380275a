package telemetry_test

import (
	"context"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/honestlimit/ratelimit/internal/cluster"
	"github.com/honestlimit/ratelimit/internal/memstore"
	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/sentinel"
	"github.com/honestlimit/ratelimit/internal/telemetry"
	"github.com/honestlimit/ratelimit/internal/vitals"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/pkg/policy"
)

var update = flag.Bool("update", false, "write docs/metrics.md anew")

const (
	page  = "../../docs/metrics.md"
	begin = "<!-- written by go test ./internal/telemetry -run Catalogue -update -->\n"
	end   = "<!-- end -->\n"
)

func TestCatalogue_IsInTheDocs(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", page)
	}
	var table strings.Builder
	if err := telemetry.WriteCatalogue(&table); err != nil {
		t.Fatal(err)
	}
	wanted := before + begin + "\n" + table.String() + "\n" + end + after
	if *update {
		if err := os.WriteFile(page, []byte(wanted), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(wanted, string(text)); diff != "" {
		t.Errorf("%s is out of date, run go test ./internal/telemetry -run Catalogue -update (-want +have):\n%s", page, diff)
	}
}

// everything registers every part with one registry, as serve does for either store, and has each of them measure
// something.
func everything(t *testing.T) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewRegistry()
	endpoints := []*limit.Endpoint{tailor(), ingest()}
	d := telemetry.NewDecisions(reg, deciding{Reason: failure.Allowed, Allowed: true})
	d.Configure(endpoints)
	d.Decide(t.Context(), []limit.Charge{charge(tailor())}, nil)
	telemetry.NewEmergency(reg, metering(true)).Configure(endpoints)
	breaker, err := failure.NewBreaker(failure.BreakerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	telemetry.NewTransitions(reg)
	telemetry.WatchBreaker(reg, breaker)
	telemetry.NewStore(reg)
	telemetry.WatchStore(reg, func() redisstore.Stats { return redisstore.Stats{} })
	telemetry.WatchVitals(reg, func() (vitals.Summary, uint64) { return vitals.Summary{At: time.Now()}, 0 })
	telemetry.NewSentinelEvents(reg)
	telemetry.WatchSentinels(reg, func() sentinel.Stats { return sentinel.Stats{FailoverEnded: time.Now()} })
	telemetry.WatchCluster(reg, func() cluster.Stats { return cluster.Stats{Seen: time.Now()} })
	telemetry.WatchMemory(reg, func() memstore.Stats { return memstore.Stats{} })
	telemetry.WatchPolicies(reg, func() policy.Status {
		return policy.Status{Domains: []policy.DomainStatus{{
			Name: "mesh", Version: "1234", Loads: map[policy.Outcome]uint64{policy.Installed: 1},
		}}}
	})
	telemetry.NewRPCs(reg)
	telemetry.WatchProcess(reg, telemetry.Build{Version: "v", Revision: "r", GoVersion: "g"})
	return reg
}

func TestCatalogue_IsWhatIsExported(t *testing.T) {
	families, err := everything(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]telemetry.Metric{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "go_") || strings.HasPrefix(f.GetName(), "process_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		exported[f.GetName()] = telemetry.Metric{
			Name: f.GetName(), Kind: telemetry.Kind(strings.ToLower(f.GetType().String())), Labels: labels,
			Help: f.GetHelp(),
		}
	}
	listed := map[string]telemetry.Metric{}
	for _, m := range telemetry.Catalogue() {
		m.Buckets = nil
		m.Labels = slices.Clone(m.Labels)
		slices.Sort(m.Labels)
		if _, twice := listed[m.Name]; twice {
			t.Errorf("%s is listed twice", m.Name)
		}
		listed[m.Name] = m
	}
	if diff := cmp.Diff(listed, exported); diff != "" {
		t.Errorf("metrics (-listed +exported):\n%s", diff)
	}
}

func TestCatalogue_FollowsTheConventionsOfPrometheus(t *testing.T) {
	families, err := everything(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestWatchPolicies_ShowsAFaultyReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mesh.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("domain: mesh\npolicies:\n  - endpoint_id: x\n    descriptor: [{key: k}]\n" +
		"    sliding_window: {limit: 1, window: 1s}\n    fail_mode: fail_closed\n    policy_version: 1\n")
	source, err := policy.NewSource(path, policy.SourceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := source.Load(); err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	telemetry.WatchPolicies(reg, source.Status)
	want(t, reg, map[string]float64{
		`ratelimit_policies{domain="mesh"}`: 1, `ratelimit_policy_stale{domain="mesh"}`: 0,
		"ratelimit_policy_last_load_failed":                                                                0,
		`ratelimit_policy_loads_total{domain="mesh",outcome="installed"}`:                                  1,
		`ratelimit_policy_info{domain="mesh",version="` + source.Current().Domain("mesh").Version() + `"}`: 1,
	})
	write("domain: mesh\npolicies: [{}]\n")
	source.Reload()
	want(t, reg, map[string]float64{
		`ratelimit_policies{domain="mesh"}`: 1, `ratelimit_policy_stale{domain="mesh"}`: 1,
		"ratelimit_policy_last_load_failed": 1, `ratelimit_policy_loads_total{domain="mesh",outcome="kept"}`: 1,
	})
}

func TestWatchBreaker_ShowsItAsItStands(t *testing.T) {
	reg := prometheus.NewRegistry()
	transitions := telemetry.NewTransitions(reg)
	breaker, err := failure.NewBreaker(failure.BreakerConfig{Failures: 2, OnTransition: transitions.Observe})
	if err != nil {
		t.Fatal(err)
	}
	telemetry.WatchBreaker(reg, breaker)
	breaker.Failed(failure.CauseDial)
	want(t, reg, map[string]float64{
		`ratelimit_breaker_state{state="closed"}`: 1, `ratelimit_breaker_state{state="open"}`: 0,
		"ratelimit_breaker_failures": 1, `ratelimit_breaker_transitions_total{from="closed",to="open"}`: 0,
	})
	breaker.Failed(failure.CauseDial)
	want(t, reg, map[string]float64{
		`ratelimit_breaker_state{state="closed"}`: 0, `ratelimit_breaker_state{state="open"}`: 1,
		`ratelimit_breaker_transitions_total{from="closed",to="open"}`: 1,
	})
}

func TestStore_CountsWhatItsHooksAreTold(t *testing.T) {
	reg := prometheus.NewRegistry()
	hooks := telemetry.NewStore(reg).Hooks()
	hooks.RoundTrip(3*time.Millisecond, 12, failure.CauseNone)
	hooks.RoundTrip(time.Millisecond, 1, failure.CauseReadOnly)
	hooks.Dropped(failure.CauseQueueFull, 3)
	hooks.Dialed(time.Millisecond, failure.CauseAuth)
	hooks.Dialed(time.Millisecond, failure.CauseNone)
	hooks.Moved("a", "b")
	hooks.Reloaded(failure.CauseNoPerm)
	want(t, reg, map[string]float64{
		"ratelimit_store_round_trip_seconds": 2, "ratelimit_store_batch_calls": 2, "ratelimit_store_dial_seconds": 1,
		"ratelimit_store_master_changes_total":           1,
		`ratelimit_store_errors_total{cause="readonly"}`: 1, `ratelimit_store_errors_total{cause="none"}`: -1,
		`ratelimit_store_errors_total{cause="reset"}`:          0,
		`ratelimit_store_dropped_total{cause="queue_full"}`:    3,
		`ratelimit_store_dials_total{cause="auth"}`:            1,
		`ratelimit_store_script_reloads_total{cause="noperm"}`: 1,
	})
	telemetry.WatchStore(reg, func() redisstore.Stats {
		return redisstore.Stats{
			Lanes: 4, Connected: 3, Queued: 2, InFlight: 1,
			DenyCache: redisstore.DenyCacheStats{Entries: 5, Hits: 6, Kept: 7, Evicted: 8},
		}
	})
	want(t, reg, map[string]float64{
		"ratelimit_store_lanes": 4, "ratelimit_store_lanes_connected": 3, "ratelimit_store_queue_depth": 2,
		"ratelimit_store_in_flight": 1, "ratelimit_deny_cache_entries": 5,
		`ratelimit_deny_cache_total{result="hit"}`: 6, `ratelimit_deny_cache_total{result="kept"}`: 7,
		`ratelimit_deny_cache_total{result="evicted"}`: 8,
	})
}

func TestWatchVitals_ShowsWhatRedisSaid(t *testing.T) {
	reg := prometheus.NewRegistry()
	var said vitals.Summary
	telemetry.WatchVitals(reg, func() (vitals.Summary, uint64) { return said, 7 })
	want(t, reg, map[string]float64{"ratelimit_redis_info_failed_total": 7, "ratelimit_redis_replicas_online": -1})
	said = vitals.Summary{
		At: time.Now(), Servers: 3, MemoryUse: .5,
		Server: vitals.Server{Online: 2, Lag: 9, LastForkMicros: 2_500_000, EvictedKeys: 4},
	}
	want(t, reg, map[string]float64{
		"ratelimit_redis_servers": 3, "ratelimit_redis_replicas_online": 2, "ratelimit_redis_replica_lag_bytes": 9,
		"ratelimit_redis_last_fork_seconds": 2.5, "ratelimit_redis_evicted_keys": 4,
		"ratelimit_redis_memory_use_ratio": .5,
	})
}

func TestWatchMemory_ShowsTheStoreAsItStands(t *testing.T) {
	reg := prometheus.NewRegistry()
	telemetry.WatchMemory(reg, func() memstore.Stats { return memstore.Stats{Buckets: 1, Expired: 2, Evicted: 3} })
	want(t, reg, map[string]float64{
		"ratelimit_memory_buckets": 1, `ratelimit_memory_dropped_total{why="full"}`: 2,
		`ratelimit_memory_dropped_total{why="evicted"}`: 3,
	})
}

func TestRPCs_CountsByCode(t *testing.T) {
	reg := prometheus.NewRegistry()
	r := telemetry.NewRPCs(reg)
	for _, err := range []error{nil, errMalformed, errMalformed, errFuture, context.Canceled} {
		_, got := r.Unary(t.Context(), nil, nil, func(context.Context, any) (any, error) { return nil, err })
		if !errors.Is(got, err) {
			t.Errorf("Unary() = %v, want %v", got, err)
		}
	}
	r.Panicked()
	want(t, reg, map[string]float64{
		`ratelimit_rpcs_total{code="OK"}`: 1, `ratelimit_rpcs_total{code="InvalidArgument"}`: 2,
		`ratelimit_rpcs_total{code="Unknown"}`: 2, "ratelimit_panics_total": 1,
	})
	for s := range maps.Keys(samples(t, reg)) {
		if strings.Contains(s, "Code(") {
			t.Errorf("%s is a label outside the closed set", s)
		}
	}
}
