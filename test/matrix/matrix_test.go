package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/drill"
	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

var update = flag.Bool("update", false, "write the golden files anew")

const ms = time.Millisecond

// outageRun is a run of 4 s with a request each 10 ms to every stream: the store is away from 2 s until 2.5 s, and
// the fault is mended at 2.45 s.
func outageRun() *journal.Journal {
	j := &journal.Journal{
		Warm: 500 * ms, End: 4000 * ms,
		Streams: []journal.Stream{
			{Name: "steady", FailMode: failClosed, Steady: true},
			{Name: "open", FailMode: failOpen, Fallback: 20},
			{Name: "ration", FailMode: failClosed, Ration: &journal.Ration{Burst: 300, PerSecond: 1}},
			{Name: "bystander", FailMode: failClosed, Bystander: true},
		},
		Acts: []journal.Act{{At: 2000 * ms, Kind: journal.Injected}, {At: 2450 * ms, Kind: journal.Mended}},
	}
	for due := time.Duration(0); due < 4000*ms; due += 10 * ms {
		took := ms
		reasons := []string{"ALLOWED", "ALLOWED", "ALLOWED", "ALLOWED"}
		verdicts := []journal.Verdict{journal.Admitted, journal.Admitted, journal.Admitted, journal.Admitted}
		if due >= 2000*ms && due < 2500*ms {
			took = 20 * ms
			reasons = []string{"CIRCUIT_OPEN", "EMERGENCY_LOCAL_LIMIT", "CIRCUIT_OPEN", "ALLOWED"}
			verdicts = []journal.Verdict{journal.Denied, journal.Denied, journal.Denied, journal.Admitted}
		}
		if due == 2000*ms {
			reasons[0], reasons[1], verdicts[1] = "FAIL_CLOSED", "REDIS_TIMEOUT", journal.Admitted
		}
		for i := range reasons {
			j.Answers = append(j.Answers, journal.Answer{
				Stream: i, Due: due, Sent: due, At: due + took, Verdict: verdicts[i], Reason: reasons[i],
			})
		}
	}
	return j
}

func TestMeasure_AnOutage(t *testing.T) {
	j := outageRun()
	got := measure(j, journal.Analyse(j), variant{ending: outage})
	want := figures{
		Requests: 1600,
		Without:  0.510, // the last decision came at 1.991 s, the next at 2.501 s
		Back:     0.051,
		Settled:  0.051,
		Modes: map[string]answers{
			failClosed: {
				Count: 51, P50: 0.020, P99: 0.020, Worst: 0.020,
				ByReason: map[string]int{"503 FAIL_CLOSED": 1, "503 CIRCUIT_OPEN": 49, "200 ALLOWED": 1},
			},
			failOpen: {
				Count: 51, P50: 0.020, P99: 0.020, Worst: 0.020,
				ByReason: map[string]int{"200 REDIS_TIMEOUT": 1, "429 EMERGENCY_LOCAL_LIMIT": 49, "200 ALLOWED": 1},
			},
			elsewhere: {
				Count: 51, P50: 0.020, P99: 0.020, Worst: 0.020, ByReason: map[string]int{"200 ALLOWED": 51},
			},
		},
		Admitted: 46, Blind: 1, BlindBound: 31,
	}
	got.Strip = strip{}
	got.Failures = nil // what the drill asserts is tested there
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("figures (-want +have):\n%s", diff)
	}
}

// The end of a fault is not that of its consequences: the store decides again, and is away once more.
func TestMeasure_BackIsNotForGood(t *testing.T) {
	j := outageRun()
	for i := range j.Answers {
		if a := &j.Answers[i]; a.Stream == 0 && a.Due >= 3000*ms && a.Due < 3100*ms {
			a.Reason, a.Verdict = "CIRCUIT_OPEN", journal.Denied
		}
	}
	got := measure(j, journal.Analyse(j), variant{ending: outage})
	if got.Back != 0.051 || got.Settled < 0.6 || got.Settled > 0.651 {
		t.Errorf("back, settled = %v s, %v s, want 0.051 and, but for 1 %% of strays, 0.65", got.Back, got.Settled)
	}
}

func TestMeasure_AnswersOutsideTheTableAndNoRecovery(t *testing.T) {
	j := outageRun()
	for i := range j.Answers {
		a := &j.Answers[i]
		if a.Due > 2450*ms && a.Reason == "ALLOWED" {
			a.Reason, a.Verdict = "CIRCUIT_OPEN", journal.Denied
		}
	}
	j.Answers[0].Verdict, j.Answers[0].Reason = journal.Failed, "Unavailable"
	got := measure(j, journal.Analyse(j), variant{ending: outage})
	if got.Outside != 1 || got.Back != -1 || got.Settled != -1 {
		t.Errorf("outside, back, settled = %d, %v, %v, want 1, -1, -1", got.Outside, got.Back, got.Settled)
	}
	for _, want := range []string{"answers outside the decision table", "the store never decided again"} {
		if !slices.ContainsFunc(got.Failures, func(f string) bool { return strings.HasPrefix(f, want) }) {
			t.Errorf("failures = %q, want %q among them", got.Failures, want)
		}
	}
}

func TestMeasure_AFailoverCountsFromItsAnnouncement(t *testing.T) {
	j := outageRun()
	j.Events = []journal.Event{
		{At: 2400 * ms, Name: journal.EventPromoted, Kind: "slave"},
		{At: 2420 * ms, Name: journal.EventSwitch},
	}
	j.Service = []journal.ServiceSample{
		{At: 1900 * ms, Address: "old"}, {At: 2550 * ms, Address: "old"}, {At: 2560 * ms, Address: "new"},
	}
	got := measure(j, journal.Analyse(j), variant{ending: failover})
	if got.Back != 0.131 {
		t.Errorf("back = %v s, want 0.131: from 2.42 s to the first decision since the service was at the old one", got.Back)
	}
}

// measured are results with a row of every kind, one of which failed.
func measured() *results {
	origin := origin{
		When: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Rate: 1250, Budget: 20 * ms, DownAfter: 1500 * ms,
		Machine: machine{Cores: 2, CPU: "a CPU", Go: "go1.26", Redis: "7.0"},
	}
	run := func(without, back float64) figures {
		return figures{
			Requests: 5000, Without: without, Back: back, Settled: 2 * back, Admitted: 3, Bound: 250, Blind: 60, BlindBound: 61,
			Stall: 0.031, Strip: strip{Without: []int{0, 0, 100, 100, 50, 0, unasked}, Healed: 0.2}, Modes: map[string]answers{
				failClosed: {
					Count: 1000, P50: 0.0007, P99: 0.0206, Worst: 0.0213,
					ByReason: map[string]int{"503 CIRCUIT_OPEN": 990, "503 FAIL_CLOSED": 9, "200 ALLOWED": 1},
				},
				failOpen: {
					Count: 1000, P50: 0.00005, P99: 0.1, Worst: 1.5,
					ByReason: map[string]int{"200 CIRCUIT_OPEN": 40, "200 REDIS_TIMEOUT": 20, "429 EMERGENCY_LOCAL_LIMIT": 940},
				},
			},
		}
	}
	calm := run(0.009, 0.001)
	for _, mode := range []string{failClosed, failOpen, elsewhere} {
		calm.Modes[mode] = answers{Count: 500, P50: 0.001, P99: 0.004, Worst: 0.012, ByReason: map[string]int{"200 ALLOWED": 500}}
	}
	failed := run(2, -1)
	failed.Outside, failed.Admitted, failed.Failures = 2, 300, []string{"the store never decided again"}
	return &results{Rows: map[string]row{
		"standalone/freeze": {Origin: origin, Runs: []figures{run(2.1, 0.05), run(2.2, 0.07), run(2.3, 0.02)}},
		"standalone/oom":    {Origin: origin, Runs: []figures{failed}},
		"sentinel/machine":  {Origin: origin, Runs: []figures{run(3.01, 0.0044)}},
		"cluster/reshard":   {Origin: origin, Runs: []figures{calm}},
	}}
}

func TestResults_Render(t *testing.T) {
	got, err := measured().render()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "matrix.golden.md", got)
}

func TestResults_Timeline(t *testing.T) {
	golden(t, "timeline.golden.svg", measured().timeline())
}

func TestMeasurement_StripCountsBothFailModesByWhenTheyWereDue(t *testing.T) {
	j := outageRun()
	s := measure(j, journal.Analyse(j), variant{ending: outage}).Strip
	want := make([]int, 130)
	for i := range want {
		switch {
		case i >= 10 && i < 20:
			want[i] = 100 // half a second, half a second after the strip begins
		case i >= 50:
			want[i] = unasked // the run is over
		}
	}
	if diff := cmp.Diff(strip{Without: want, Healed: 0.45}, s); diff != "" {
		t.Errorf("strip (-want +have):\n%s", diff)
	}
}

// golden compares with a file of testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +have); go test ./test/matrix -update writes it:\n%s", name, diff)
	}
}

func TestResults_KeepsOtherRows(t *testing.T) {
	dir := t.TempDir()
	r := measured()
	if err := r.save(dir); err != nil {
		t.Fatal(err)
	}
	again, err := loadResults(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, again); diff != "" {
		t.Errorf("results (-saved +loaded):\n%s", diff)
	}
	empty, err := loadResults(t.TempDir())
	if err != nil || len(empty.Rows) != 0 {
		t.Errorf("without a file: %v rows, %v, want none and no error", len(empty.Rows), err)
	}
}

func TestRow_MissNamesWhatFailed(t *testing.T) {
	rows := measured().Rows
	if err := rows["standalone/freeze"].miss("x"); err != nil {
		t.Errorf("a row that met everything misses %v", err)
	}
	if err := rows["standalone/oom"].miss("standalone/oom"); err == nil ||
		err.Error() != "standalone/oom: the store never decided again" {
		t.Errorf("miss = %v, want what failed", err)
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, args string
		want       options
		err        string
	}{
		{name: "nothing", want: options{binary: ".cache/bin/ratelimit", server: "redis-server", runs: 1, rate: 1250}},
		{
			name: "a part", args: "-only sentinel,oom,cluster/kill -runs 3 -binary b -redis-server r -rate 100",
			want: options{binary: "b", server: "r", only: "sentinel,oom,cluster/kill", runs: 3, rate: 100},
		},
		{name: "an unknown fault", args: "-only stall,nonsense", err: "nonsense"},
		{name: "a fault where there is none", args: "-only standalone/machine", err: "standalone/machine"},
		{name: "no runs", args: "-runs 0", err: "-runs"},
		{name: "an argument", args: "stall", err: "arguments"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parse(strings.Fields(c.args))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error = %v, want one about %s", err, c.err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("parse = %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestFaults_AreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range faults() {
		if f.id == "" || f.name == "" || f.done == "" || len(f.cases) == 0 || seen[f.id] {
			t.Errorf("fault %q lacks something, or its id is taken", f.id)
		}
		seen[f.id] = true
		for on, v := range f.cases {
			if err := v.drill(f, on).Validate(); err != nil {
				t.Errorf("%s: %v", key(on, f), err)
			}
			if v.ending == outage && f.ends == "" {
				t.Errorf("%s: nothing says what its recovery counts from", key(on, f))
			}
		}
	}
}

func TestSpan(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0", 0.00005: "< 0.1 ms", 0.00124: "1.2 ms", 0.0206: "21 ms", 0.9994: "999 ms", 2.04: "2.0 s",
	} {
		if got := span(seconds); got != want {
			t.Errorf("span(%v) = %q, want %q", seconds, got, want)
		}
	}
}

func TestPercent_NeverRoundsToNoneOrAll(t *testing.T) {
	for _, c := range []struct {
		n, all int
		want   string
	}{{1000, 1000, "100 %"}, {999, 1000, "> 99 %"}, {1, 1000, "< 1 %"}, {437, 1000, "44 %"}} {
		if got := percent(c.n, c.all); got != c.want {
			t.Errorf("percent(%d, %d) = %q, want %q", c.n, c.all, got, c.want)
		}
	}
}

// What the old master admits in an orderly failover may be lost, and its decisions are no recovery.
func TestMeasure_AnOrderlyFailoverIsOverAfterThePause(t *testing.T) {
	j := outageRun()
	j.Events = []journal.Event{
		{At: 1900 * ms, Name: journal.EventPromoted, Kind: "slave"},
		{At: 1950 * ms, Name: journal.EventSwitch},
	}
	j.Acts[0].At = 1800 * ms
	got := measure(j, journal.Analyse(j), variant{ending: failover, orderly: true})
	if want := 0.551; got.Back != want {
		t.Errorf("back = %v s, want %v: from 1.95 s to the decision at 2.501 s", got.Back, want)
	}
	if d := (variant{ending: failover, orderly: true}).drill(fault{id: "x"}, drill.Sentinel); d.SplitBrain <= 0 {
		t.Error("the drill is not told that the old master goes on")
	}
}

func TestVariant_TellsTheDrillWhatMustComeOfIt(t *testing.T) {
	for ending, want := range map[ending]drill.Fault{
		unnoticed: {Expect: journal.NoFailover, Calm: true},
		outage:    {Expect: journal.NoFailover, Blackout: true},
		failover:  {Expect: journal.Failover},
	} {
		got := variant{ending: ending}.drill(fault{id: "x"}, drill.Cluster)
		if got.Expect != want.Expect || got.Calm != want.Calm || got.Blackout != want.Blackout {
			t.Errorf("ending %d = %+v, want %+v", ending, got, want)
		}
	}
}
