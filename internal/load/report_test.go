package load_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/load"
)

var update = flag.Bool("update", false, "write the golden files")

// full has every part that a report can have.
func full() load.Report {
	latency := func(factor float64) load.Latency {
		return load.Latency{
			Mean: 0.0005 * factor, P50: 0.0004 * factor, P90: 0.0008 * factor, P99: 0.0021 * factor, P999: 0.01 * factor,
			P9999: 0.02 * factor, Max: 1.25 * factor, Distribution: []load.Bucket{{UpTo: 2, Requests: 40_000}},
		}
	}
	phase := func(name string, seconds float64, errors int64) load.Phase {
		return load.Phase{
			Name: name, Seconds: seconds, Requests: 1000 + errors, RequestsPerSecond: float64(1000+errors) / seconds,
			Admitted: 900, OverLimit: 100, Errors: errors, Degraded: 7, Latency: latency(1 + float64(errors)), Answers: []load.Answer{},
		}
	}
	all := phase("all", 10, 39_000)
	all.Latency = latency(1)
	all.Answers = []load.Answer{
		{Answer: "error", Reason: "FailedPrecondition", Requests: 39_000},
		{Answer: "OK", Reason: "ALLOWED", Requests: 900},
		{Answer: "OVER_LIMIT", Reason: "OVER_LIMIT", Requests: 98},
		{Answer: "unanswered", Requests: 2},
	}
	return load.Report{
		Schema: load.Schema, Target: "127.0.0.1:8081", Domain: "mesh", Loop: "open", Connections: 4, Streams: 64,
		Keys: 1000, Dist: "zipf", Seed: 7, OfferedPerSecond: 4000, NotOffered: 12, SendDelayP99: 0.00012, SendDelayMax: 0.004,
		All: all, ConnectionsOpened: 8, ConnectionsFailed: 3,
		CPU: []load.CPU{
			{PID: 4711, Name: "ratelimit", Seconds: 1.5, Cores: 0.15, MicrosecondsPerRequest: 37.5},
			{PID: 4712, Name: "redis-server", Gone: true},
		},
		Generator: &load.CPU{PID: 99, Name: "ratelimit", Seconds: 1, Cores: 0.1, MicrosecondsPerRequest: 25},
		Fault: &load.FaultReport{
			Began: 5, Ended: 7, Phases: []load.Phase{phase("before", 5, 0), phase("during", 2, 39_000), phase("after", 3, 0)},
			Recovered: true, Recovery: 0.0345, Settled: 0.1, ReconnectsDuring: 4,
		},
		Overshoot: &load.Overshoot{
			LimitPerSecond: 100, LimitBurst: 200, Seconds: 10, Keys: 1000, Admitted: 1_300_000, Allowed: 1_200_000,
			Excess: 100_123, KeysOver: 12, WorstKey: 3, WorstAdmitted: 12_345,
		},
	}
}

func TestReport_WritesText(t *testing.T) {
	var b strings.Builder
	if err := full().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.txt", b.String())
}

// Programs read these names: one that changes or goes is a break, a new one is not.
func TestReport_KeepsItsJSONNames(t *testing.T) {
	encoded, err := json.Marshal(full())
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	collect(decoded, "", names)
	golden(t, "names.txt", strings.Join(slices.Sorted(maps.Keys(names)), "\n")+"\n")
}

// collect adds the path of every name in v.
func collect(v any, path string, names map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			names[path+name] = true
			collect(inner, path+name+".", names)
		}
	case []any:
		for _, inner := range v {
			collect(inner, path, names)
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func ExampleRun() {
	_, err := load.Run(context.Background(), load.Config{Target: "127.0.0.1:8081", Rate: 5000, Duration: time.Minute})
	fmt.Println(err)
	// Output:
	// load: Domain: is missing: the domain that the service's policies are for
	// load: Descriptors: are missing: say what to ask, like tenant=acme
}
