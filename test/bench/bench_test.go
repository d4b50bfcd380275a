package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/load"
	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/test/sheet"
)

func TestSpreadOf_TakesTheMiddle(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   spread
	}{
		{nil, spread{}},
		{[]float64{7}, spread{7, 7, 7}},
		{[]float64{9, 1, 4}, spread{4, 1, 9}},
		{[]float64{9, 1, 4, 5}, spread{4.5, 1, 9}},
	} {
		if got := spreadOf(tt.values); got != tt.want {
			t.Errorf("spreadOf(%v) = %v, want %v", tt.values, got, tt.want)
		}
	}
}

func TestMedian_LeavesItsArgumentAlone(t *testing.T) {
	values := []float64{3, 1, 2}
	median(values)
	if diff := cmp.Diff([]float64{3, 1, 2}, values); diff != "" {
		t.Error(diff)
	}
}

func TestRatios_ComparesRoundByRound(t *testing.T) {
	// The machine got twice as fast between the rounds: the ratio of the medians would be 1.
	got := ratios([]float64{10, 20, 7}, []float64{20, 40, 0})
	if diff := cmp.Diff([]float64{0.5, 0.5}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTable_IsMarkdown(t *testing.T) {
	tab := sheet.NewTable("", "a")
	tab.Row("x|y", "1")
	want := "|  | a |\n|---|---|\n| x\\|y | 1 |\n"
	if got := tab.String(); got != want {
		t.Errorf("table %q, want %q", got, want)
	}
}

func TestNumbers_ReadWell(t *testing.T) {
	for got, want := range map[string]string{
		span(0.0000123): "12.3 µs", span(0.00123): "1.23 ms", span(12.345): "12.3 s", digits(123456, 3): "123456",
		digits(0.5, 3): "0.5", thousands(63500): "63.5 k", spread{2, 1, 3}.show(whole): "2 [1-3]", spread{}.show(whole): "-",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPeerCommand_PutsAddressesIn(t *testing.T) {
	s := &subject{addr: "127.0.0.1:1111", redisAddr: "127.0.0.1:2222"}
	got, err := peerCommand("${RUN} {grpc} {grpc_port} {redis} {redis_port} {port_a} {port_b} {port_a}", s)
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^\$\{RUN\} 127\.0\.0\.1:1111 1111 127\.0\.0\.1:2222 2222 (\d+) (\d+) (\d+)$`).FindStringSubmatch(got)
	if want == nil || want[1] != want[3] || want[1] == want[2] {
		t.Errorf("peerCommand = %q: every {port_NAME} must be one port, and another than the rest", got)
	}
}

func TestPeerCommand_RefusesWhatItDoesNotKnow(t *testing.T) {
	_, err := peerCommand("run {gprc}", &subject{addr: "127.0.0.1:1", redisAddr: "127.0.0.1:2"})
	if err == nil || !strings.Contains(err.Error(), "{gprc}") {
		t.Errorf("error %v, want one that names {gprc}", err)
	}
}

func TestReplaceBlock_KeepsTheRest(t *testing.T) {
	text := "before\n<!-- goals -->\nold\n<!-- end of goals -->\nafter\n"
	got, err := replaceBlock(text, "goals", "new\n\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\n<!-- goals -->\nnew\n<!-- end of goals -->\nafter\n"; got != want {
		t.Errorf("replaceBlock = %q, want %q", got, want)
	}
	for _, broken := range []string{"", "<!-- goals -->\nold\n", "<!-- end of goals -->\n"} {
		if _, err := replaceBlock(broken, "goals", "new"); err == nil {
			t.Errorf("replaceBlock(%q) says nothing of the missing comment", broken)
		}
	}
}

func TestParseMicro_JoinsRuns(t *testing.T) {
	got := parseMicro(`goos: linux
pkg: github.com/honestlimit/ratelimit/pkg/failure
BenchmarkGuard_Decide/breaker=open-2         	12000000	        98.5 ns/op	       0 B/op	       0 allocs/op
BenchmarkGuard_Decide/breaker=open-2         	12000000	       101 ns/op	       0 B/op	       0 allocs/op
pkg: github.com/honestlimit/ratelimit/internal/redisstore
BenchmarkStore/client=lanes-2  	 100	 10 ns/op	 5 decisions/s	 16 B/op	 2 allocs/op
PASS
`)
	want := []microbenchmark{
		{"pkg/failure Guard_Decide/breaker=open", []float64{98.5, 101}, []float64{0, 0}, []float64{0, 0}},
		{"internal/redisstore Store/client=lanes", []float64{10}, []float64{16}, []float64{2}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseMetrics_SumsOverLabels(t *testing.T) {
	got, err := parseMetrics(strings.NewReader("# HELP a b\na{x=\"1 }\"} 2\na{x=\"2\"} 3.5\n\nb 1e3\nc 7 1700000000\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(samples{"a": 5.5, "b": 1000, "c": 7}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := parseMetrics(strings.NewReader("nothing\n")); err == nil {
		t.Error("a line without a value is accepted")
	}
}

func TestParseInfo_ReadsNumbersAndCalls(t *testing.T) {
	got := parseInfo("# Stats\r\nused_memory:123\r\nredis_version:7.0.15\r\ncmdstat_set:calls=7,usec=9\r\n")
	if diff := cmp.Diff(samples{"used_memory": 123, "cmdstat_set": 7}, got); diff != "" {
		t.Error(diff)
	}
	if n := calls(got, "set", "get"); n != 7 {
		t.Errorf("calls = %v, want 7", n)
	}
}

func TestParseH2load_WantsOnlySuccesses(t *testing.T) {
	const report = "finished in 4.00s, 68378.67 req/s, 14.22MB/s\nstatus codes: 205136 2xx, 0 3xx, 0 4xx, 0 5xx\n"
	if got, err := parseH2load(report); err != nil || got != 68378.67 {
		t.Errorf("parseH2load = %v, %v, want 68378.67", got, err)
	}
	for _, bad := range []string{"", strings.Replace(report, "0 5xx", "3 5xx", 1), strings.Replace(report, "205136 2xx", "0 2xx", 1)} {
		if got, err := parseH2load(bad); err == nil {
			t.Errorf("parseH2load(%q) = %v, want an error", bad, got)
		}
	}
}

func TestBound_Verdict(t *testing.T) {
	for _, tt := range []struct {
		bound bound
		value float64
		want  string
	}{
		{atLeast(3), 3, "met"},
		{atLeast(3), 2.99, "**not met**"},
		{atMost(0.4), 0.4, "met"},
		{atMost(0.4), 0.41, "**not met**"},
		{stretch(1.15, 1), 1, "met, stretch too"},
		{stretch(1.15, 1), 1.1, "met"},
		{stretch(1.15, 1), 1.2, "**not met**"},
	} {
		if got := tt.bound.verdict(tt.value); got != tt.want {
			t.Errorf("%v: verdict(%v) = %q, want %q", tt.bound, tt.value, got, tt.want)
		}
	}
}

func TestFreezeRound_CountsTheUnavoidable(t *testing.T) {
	f := freezeRound{Report: load.Report{
		NotOffered: 1, All: load.Phase{Errors: 800, Degraded: 50, Unanswered: 9},
		Fault: &load.FaultReport{Began: 1, Ended: 1.1, Recovery: 0.002},
	}}
	if got := f.unavoidable(); math.Abs(got-800) > 1e-6 {
		t.Errorf("unavoidable = %v, want 800: 10,000 a second for 100 ms less the budget of 20 ms", got)
	}
	if got := f.lost(); got != 860 {
		t.Errorf("lost = %v, want 860", got)
	}
}

func TestSoakFigures_Verdict(t *testing.T) {
	run := func(memory, goroutines func(i int) float64) *soakFigures {
		f := &soakFigures{}
		for i := range 300 {
			f.Samples = append(f.Samples, soakSample{
				Seconds: float64(i), Memory: memory(i), Goroutines: goroutines(i), PerSecond: 1,
			})
		}
		return f
	}
	flat := func(v float64) func(int) float64 { return func(i int) float64 { return v + float64(i%7)*v/10 } }
	leak := func(v, each float64) func(int) float64 { return func(i int) float64 { return v + each*float64(i) } }
	for _, tt := range []struct {
		name    string
		figures *soakFigures
		want    string
	}{
		{"flat", run(flat(40<<20), flat(150)), ""},
		{"memory grows", run(leak(40<<20, 1<<20), flat(150)), "memory grew"},
		{"goroutines grow", run(flat(40<<20), leak(150, 10)), "goroutines grew"},
		{"nothing measured", &soakFigures{}, "too few"},
		{"no run", nil, "too few"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.figures.verdict()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("verdict = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestRotated_BeginsWithAnotherOneEachRound(t *testing.T) {
	all := subjects{{addr: "a"}, {addr: "b"}, {addr: "c"}}
	for round, want := range []string{"abc", "bca", "cab", "abc"} {
		got := ""
		for _, s := range all.rotated(round) {
			got += s.addr
		}
		if got != want {
			t.Errorf("round %d: %s, want %s", round, got, want)
		}
	}
}

// pages makes a checkout with the two pages as they stand, and returns its root.
func pages(t *testing.T) string {
	t.Helper()
	root, err := process.Root()
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	for _, page := range []string{performancePage, readmePage} {
		data, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, page)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, page), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func TestResults_RenderIntoThePages(t *testing.T) {
	root, r := pages(t), example()
	if err := r.render(root); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, performancePage))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| through Redis: CPU in the service, of the floor's | ≤ 1.15, stretch 1 | 1.10 [1.00-1.20]; over 10,000 tenants: 1.10 | met |",
		"| through Redis: requests/s, times those of other | ≥ 3 | 2.50 [2.50-2.50]; over 10,000 tenants: 2.50 | **not met** |",
		"3 cores of a fast one", "2 rounds of 3s",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("%s does not hold %q", performancePage, want)
		}
	}
	for _, link := range regexp.MustCompile(`\]\((performance/[^)]+)\)`).FindAllStringSubmatch(string(page), -1) {
		if _, err := os.Stat(filepath.Join(root, "docs", link[1])); err != nil {
			t.Errorf("the page shows a plot that is not drawn: %v", err)
		}
	}
	again := string(page)
	if err := r.render(root); err != nil {
		t.Fatal(err)
	}
	if page, _ = os.ReadFile(filepath.Join(root, performancePage)); again != string(page) {
		t.Error("a second rendering of the same figures differs")
	}
}

func TestResults_RenderBeforeAnyRun(t *testing.T) {
	root := pages(t)
	r, err := loadResults(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.render(root); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, readmePage))
	if err != nil || !strings.Contains(string(readme), "<!-- bench -->\nNot measured yet") {
		t.Errorf("README does not say that nothing was measured: %v", err)
	}
}

func TestResults_SurviveTheFile(t *testing.T) {
	root, r := t.TempDir(), example()
	if err := r.save(root); err != nil {
		t.Fatal(err)
	}
	got, err := loadResults(root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Error(diff)
	}
}

// example is a run of two rounds in which a decision through Redis costs 1.0 and 1.2 times the floor.
func example() *results {
	o := origin{
		When: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Machine: machine{Cores: 3, CPU: "a fast one"},
		Rounds: 2, Duration: 3 * time.Second, Connections: 4, Streams: 16,
	}
	r := &results{Sections: map[string]origin{"saturation": o, "outage": o, "soak": o}}
	for subject, cost := range map[string][]float64{
		floorName: {20, 10}, embeddedName: {15, 8}, redisName: {20, 12}, "other": {50, 25},
	} {
		for _, w := range workloads {
			row := saturationRow{Subject: subject, Workload: w.name}
			for _, c := range cost {
				row.Rounds = append(row.Rounds, report(c, map[string]float64{"other": 10}[subject]+1))
			}
			r.Saturation = append(r.Saturation, row)
		}
	}
	// Throughput is stated, not derived: 2.5 times the other's.
	for i := range r.Saturation {
		for k := range r.Saturation[i].Rounds {
			a := &r.Saturation[i].Rounds[k].All
			a.RequestsPerSecond = 50_000
			if r.Saturation[i].Subject == "other" {
				a.RequestsPerSecond = 20_000
			}
		}
	}
	r.Outage = []outageRow{{redisHealthy, measured{report(20, 2)}}, {redisFrozen, measured{report(10, 0)}}}
	r.Soak = &soakFigures{Report: report(1, 1)}
	for i := range 30 {
		r.Soak.Samples = append(r.Soak.Samples, soakSample{float64(i), 40 << 20, 150, 40_000})
	}
	return r
}

func report(service, redis float64) load.Report {
	r := load.Report{Schema: load.Schema, CPU: []load.CPU{{MicrosecondsPerRequest: service}, {MicrosecondsPerRequest: redis}}}
	r.All = load.Phase{
		Seconds: 3, Requests: 100, Admitted: 100, Answers: []load.Answer{{Answer: "OK", Reason: "ALLOWED", Requests: 100}},
		Latency: load.Latency{P50: 1e-3, P90: 2e-3, P99: 3e-3, P999: 4e-3, P9999: 5e-3, Max: 6e-3},
	}
	return r
}

func TestResults_JSONHoldsRawRounds(t *testing.T) {
	data, err := json.Marshal(example())
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "requests_per_second"); n < 32 {
		t.Errorf("the file holds %d throughputs, want every round of every cell", n)
	}
}
