package journal_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

const (
	ms     = time.Millisecond
	second = time.Second
)

// failover is a run as it should be: 10 s, one request each 10 ms to every stream. The master is killed at 3 s,
// missed at 4 s, replaced at 4.2 s, and back as a replica at 8 s.
func failover() *journal.Journal {
	j := &journal.Journal{
		Plan: journal.Plan{
			Category: journal.MasterExit, Title: "The master is told to stop.", Topology: "1 + 2 + 3", Master: "redis-0",
			Expect: journal.Failover, Budget: 20 * ms, Margin: 30 * ms, MaxInFlight: 64,
			PromoteWithin: 3 * second, DecideWithin: 150 * ms, SettleWithin: 3 * second, Loss: second,
		},
		Warm: 500 * ms, End: 10 * second,
		Streams: []journal.Stream{
			{Name: "steady", FailMode: "fail_closed", PerSecond: 100, Steady: true},
			{Name: "open", FailMode: "fail_open", PerSecond: 100, Fallback: 5},
			{Name: "ration", FailMode: "fail_closed", PerSecond: 100, Ration: &journal.Ration{Burst: 400, PerSecond: 1}},
		},
	}
	j.Acts = []journal.Act{
		{At: 3 * second, Kind: journal.Injected, Text: "redis-0 told to stop"},
		{At: 6 * second, Kind: journal.Mended, Text: "redis-0 started"},
	}
	j.Events = []journal.Event{
		{At: 2500 * ms, Source: "sentinel-1", Name: "+sdown", Kind: "master", Text: "before the fault"},
		{At: 3900 * ms, Source: "sentinel-1", Name: "+sdown", Kind: "slave", Text: "another"},
		{At: 4000 * ms, Source: "sentinel-1", Name: "+sdown", Kind: "master", Text: "mymaster 127.0.0.1 1"},
		{At: 4050 * ms, Source: "sentinel-2", Name: "+sdown", Kind: "master", Text: "mymaster 127.0.0.1 1"},
		{At: 4060 * ms, Source: "sentinel-1", Name: "+odown", Kind: "master", Text: "mymaster 127.0.0.1 1 #quorum 2/2"},
		{At: 4070 * ms, Source: "sentinel-1", Name: "+elected-leader", Kind: "master", Text: "mymaster 127.0.0.1 1"},
		{At: 4150 * ms, Source: "sentinel-1", Name: "+promoted-slave", Kind: "slave", Text: "127.0.0.1:2"},
		{At: 4200 * ms, Source: "sentinel-1", Name: "+switch-master", Text: "mymaster 127.0.0.1 1 127.0.0.1 2"},
	}
	left := 400
	emergency := 0
	for at := time.Duration(0); at < 10*second; at += 10 * ms {
		out := at >= 3*second && at < 4250*ms
		answers := []journal.Answer{
			{Stream: 0, Verdict: journal.Admitted, Reason: "ALLOWED"},
			{Stream: 1, Verdict: journal.Admitted, Reason: "ALLOWED"},
			{Stream: 2, Verdict: journal.Admitted, Reason: "ALLOWED"},
		}
		took := ms
		switch {
		case out:
			took = 20 * ms
			answers[0].Verdict, answers[0].Reason = journal.Denied, "FAIL_CLOSED"
			answers[1].Verdict, answers[1].Reason = journal.Denied, "EMERGENCY_LOCAL_LIMIT"
			if emergency < 11 {
				emergency++
				answers[1].Verdict, answers[1].Reason = journal.Admitted, "REDIS_TIMEOUT"
			}
			answers[2].Verdict, answers[2].Reason = journal.Denied, "CIRCUIT_OPEN"
		case left == 0:
			answers[2].Verdict, answers[2].Reason = journal.Denied, "RATE_LIMITED"
		default:
			left--
		}
		for _, a := range answers {
			a.Due, a.Sent, a.At = at, at, at+took
			j.Answers = append(j.Answers, a)
		}
	}
	for at := time.Duration(0); at <= 10*second; at += 50 * ms {
		s := journal.ServiceSample{At: at, Address: "127.0.0.1:1", InFlight: 3, Breaker: "closed"}
		if at >= 4250*ms {
			s.Address = "127.0.0.1:2"
		}
		j.Service = append(j.Service, s)
		j.Rounds = append(j.Rounds, round(at))
	}
	return j
}

// round is what the nodes say at a moment of that run.
func round(at time.Duration) journal.Round {
	n := [3]journal.NodeState{}
	for i := range n {
		n[i] = journal.NodeState{
			Name: []string{"redis-0", "redis-1", "redis-2"}[i], LinkUp: true, Script: true, Master: i == 0, Accepted: 10,
		}
	}
	if at >= 3*second {
		n[0] = journal.NodeState{Name: "redis-0", Error: "connection refused"}
		n[1].Master, n[1].Accepted = at >= 4150*ms, 17
	}
	if at >= 6*second {
		n[0] = journal.NodeState{Name: "redis-0", Master: at < 8*second, LinkUp: at >= 8*second, Script: true, Accepted: 2}
	}
	return journal.Round{At: at, Nodes: n[:]}
}

func TestAnalyse_FindsTheMarks(t *testing.T) {
	r := journal.Analyse(failover())
	want := journal.Marks{
		Fault: journal.Seen(3 * second), SDown: journal.Seen(4 * second), ODown: journal.Seen(4060 * ms),
		Leader: journal.Seen(4070 * ms), Promoted: journal.Seen(4150 * ms), Switch: journal.Seen(4200 * ms),
		Decided: journal.Seen(4251 * ms), Mended: journal.Seen(6 * second), Healthy: journal.Seen(8 * second),
	}
	if diff := cmp.Diff(want, r.Marks); diff != "" {
		t.Errorf("marks (-want +have):\n%s", diff)
	}
	for _, c := range []struct {
		name      string
		got, want journal.Moment
	}{
		{"T5-T0", r.Recovery, journal.Seen(1251 * ms)},
		{"T5-switch", r.AfterSwitch, journal.Seen(51 * ms)},
		{"T6-T0", r.Stabilization, journal.Seen(5 * second)},
		{"T6-mended", r.AfterMending, journal.Seen(2 * second)},
	} {
		if c.got != c.want {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestAnalyse_PassesWhatIsAsItShouldBe(t *testing.T) {
	r := journal.Analyse(failover())
	for _, c := range r.Checks {
		if !c.Passed {
			t.Errorf("%s: want %s, got %s", c.Name, c.Want, c.Got)
		}
	}
	if !r.Passed || len(r.Checks) < 9 {
		t.Errorf("passed = %v with %d checks, want true with at least 9", r.Passed, len(r.Checks))
	}
}

// Each case spoils one thing, and exactly the named checks must notice.
func TestAnalyse_FailsWhatIsNot(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*journal.Journal)
		want  []string
	}{
		{"an answer that is an error", func(j *journal.Journal) {
			j.Answers[0].Verdict, j.Answers[0].Reason = journal.Failed, "Unavailable"
		}, []string{"answers outside the decision table"}},
		{"a reason with the wrong verdict", func(j *journal.Journal) {
			j.Answers[0].Verdict, j.Answers[0].Reason = journal.Admitted, "FAIL_CLOSED"
		}, []string{"answers outside the decision table"}},
		{
			"a late decision", func(j *journal.Journal) { j.Answers[600].At = j.Answers[600].Due + 53*ms },
			[]string{"no decision later"},
		},
		{
			"a decision that is late while the machine stalls", func(j *journal.Journal) {
				j.Answers[600].At = j.Answers[600].Due + 53*ms
				j.Stalls = []journal.Stall{{At: 2020 * ms, Late: 4 * ms}}
			}, nil,
		},
		{
			"a decision that is later than the machine stalls", func(j *journal.Journal) {
				j.Answers[600].At = j.Answers[600].Due + 53*ms
				j.Stalls = []journal.Stall{{At: 2020 * ms, Late: 2 * ms}, {At: 4 * second, Late: second}}
			},
			[]string{"no decision later"},
		},
		{"a late decision while it warms up is not counted", func(j *journal.Journal) { j.Answers[0].At = 60 * ms }, nil},
		{"too much in flight", func(j *journal.Journal) { j.Service[7].InFlight = 65 }, []string{"decisions in flight"}},
		{"nobody looked at the service", func(j *journal.Journal) { j.Service = nil }, []string{"decisions in flight"}},
		{
			"a promotion that takes long", func(j *journal.Journal) { j.Plan.PromoteWithin = second },
			[]string{"a replica is promoted"},
		},
		{
			"no promotion", func(j *journal.Journal) { j.Events = j.Events[:6] },
			[]string{"a replica is promoted", "one failover", "the new master decides"},
		},
		{"a second failover", func(j *journal.Journal) {
			j.Events = append(j.Events, journal.Event{At: 5 * second, Name: "+promoted-slave", Kind: "slave", Text: "another"})
		}, []string{"one failover"}},
		{
			"a bystander that notices", func(j *journal.Journal) { j.Streams[1].Bystander = true },
			[]string{"decisions of open, which nothing befell"},
		},
		{"a blackout that ends before it is mended", func(j *journal.Journal) { j.Plan.Blackout = true }, nil},
		{
			"a blackout that outlasts the mending", func(j *journal.Journal) {
				j.Plan.Blackout, j.Acts[1].At = true, 4100*ms
			},
			[]string{"the new master decides (T5 after mending)", "all nodes are healthy"},
		},
		{
			"a service that follows late", func(j *journal.Journal) { j.Plan.DecideWithin = 50 * ms },
			[]string{"the new master decides"},
		},
		{"a script that is missing", func(j *journal.Journal) {
			for _, r := range j.Rounds {
				r.Nodes[2].Script = false
			}
		}, []string{"all nodes are healthy"}},
		{"an old master that stays one", func(j *journal.Journal) {
			for _, r := range j.Rounds {
				r.Nodes[0].Master = true
			}
		}, []string{"all nodes are healthy", "the old master came back"}},
		{"decisions that stay degraded", func(j *journal.Journal) {
			for i := range j.Answers[2000:2050] {
				j.Answers[2000+i].Reason, j.Answers[2000+i].Verdict = "CIRCUIT_OPEN", journal.Denied
			}
		}, []string{"decisions are ordinary again"}},
		{"decisions that stay degraded while the machine stalls", func(j *journal.Journal) {
			for i := range j.Answers[2000:2050] {
				j.Answers[2000+i].Reason, j.Answers[2000+i].Verdict = "CIRCUIT_OPEN", journal.Denied
			}
			j.Stalls = []journal.Stall{{At: 6700 * ms, Late: 11 * ms}}
		}, nil},
		{"a bucket that admits more than may be lost", func(j *journal.Journal) {
			j.Streams[2].Ration = &journal.Ration{Burst: 299}
		}, []string{"admissions of ration"}},
		{"a bucket that admits what may be lost", func(j *journal.Journal) {
			j.Streams[2].Ration = &journal.Ration{Burst: 300}
		}, nil},
		{"a bucket that never denies", func(j *journal.Journal) {
			for i := range j.Answers {
				if j.Answers[i].Reason == "RATE_LIMITED" {
					j.Answers[i].Reason, j.Answers[i].Verdict = "ALLOWED", journal.Admitted
				}
			}
			j.Streams[2].Ration = &journal.Ration{Burst: 1000}
		}, []string{"the limit of ration is enforced"}},
		{
			"an emergency limiter that leaks", func(j *journal.Journal) { j.Streams[1].Fallback = 2 },
			[]string{"emergency admissions of open"},
		},
		{
			"a failover that nobody wanted", func(j *journal.Journal) { j.Plan.Expect = journal.NoFailover },
			[]string{"no failover happens"},
		},
		{"a calm that was none", func(j *journal.Journal) { j.Plan.Calm = true }, []string{"decisions stay ordinary"}},
		{"a check of the drill's own", func(j *journal.Journal) {
			j.Checks = append(j.Checks, journal.Check{Name: "the fault was felt"})
		}, []string{"the fault was felt"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := failover()
			c.spoil(j)
			r := journal.Analyse(j)
			var failed []string
			for _, check := range r.Checks {
				if !check.Passed {
					failed = append(failed, check.Name)
				}
			}
			if r.Passed != (len(failed) == 0) {
				t.Errorf("passed = %v although %v failed", r.Passed, failed)
			}
			if len(failed) != len(c.want) {
				t.Fatalf("failed = %q, want %q", failed, c.want)
			}
			for i := range failed {
				if !strings.HasPrefix(failed[i], c.want[i]) {
					t.Errorf("failed = %q, want %q", failed, c.want)
				}
			}
		})
	}
}

// The service stays at an old master that still answers: those decisions are not the new master's.
func TestAnalyse_T5WaitsForTheServiceToMove(t *testing.T) {
	j := failover()
	for i := range j.Answers {
		if a := &j.Answers[i]; a.Stream == 0 {
			a.Verdict, a.Reason = journal.Admitted, "ALLOWED"
		}
	}
	for i := range j.Service {
		if s := &j.Service[i]; s.At < 5*second {
			s.Address = "127.0.0.1:1"
		}
	}
	if got, want := journal.Analyse(j).Marks.Decided, journal.Seen(4951*ms); got != want {
		t.Errorf("T5 = %v, want %v: the first after the last look that saw the old address", got.At, want.At)
	}
	for i := range j.Service {
		j.Service[i].Address = "127.0.0.1:1"
	}
	if got := journal.Analyse(j).Marks.Decided; got.Happened {
		t.Errorf("T5 = %v although the service never moved", got.At)
	}
}

func TestAnalyse_CountsWhatASplitBrainMayLose(t *testing.T) {
	j := failover()
	j.Plan.Loss, j.Plan.SplitBrain = 500*ms, 2*second
	l := journal.Analyse(j).Ledgers[0]
	// 0.5 s before the fault, and until T5 at 4.251 s; in it 50 admissions before the fault, and one at T5 is not in it.
	if want := 1.751; l.Window != want {
		t.Errorf("window = %v s, want %v", l.Window, want)
	}
	if l.InWindow != 50 || l.MayBeLost != 50 || l.Admitted != 400 || l.Over != 0 {
		t.Errorf("ledger = %+v, want 400 admitted and 50 that may be lost", l)
	}
}

func TestAnalyse_CountsReconnectsAcrossARestart(t *testing.T) {
	r := journal.Analyse(failover())
	want := []journal.Connects{
		{Node: "redis-0", Accepted: 2, Peak: 2}, {Node: "redis-1", Accepted: 7, Peak: 7}, {Node: "redis-2"},
	}
	if diff := cmp.Diff(want, r.Connects); diff != "" {
		t.Errorf("connects (-want +have):\n%s", diff)
	}
}

func TestAnalyse_FillsTheTimeline(t *testing.T) {
	r := journal.Analyse(failover())
	if len(r.Slots) != 100 {
		t.Fatalf("%d slots for 10 s, want 100", len(r.Slots))
	}
	// Answers of 3.5 to 3.6 s: due 20 ms before.
	want := map[string]int{"FAIL_CLOSED": 10, "EMERGENCY_LOCAL_LIMIT": 10, "CIRCUIT_OPEN": 10}
	if diff := cmp.Diff(want, r.Slots[35].Reasons); diff != "" {
		t.Errorf("slot 35 (-want +have):\n%s", diff)
	}
	if r.Slots[35].Worst != 0.02 {
		t.Errorf("worst of slot 35 = %v s, want 0.02", r.Slots[35].Worst)
	}
	var phases []string
	for _, p := range r.Phases {
		phases = append(phases, p.Name)
	}
	if diff := cmp.Diff([]string{"before", "during", "after"}, phases); diff != "" {
		t.Error(diff)
	}
	if p := r.Phases[0]; p.Requests != 750 || p.Worst != 0.001 {
		t.Errorf("before = %+v, want 750 requests (the warm-up is left out) within 1 ms", p)
	}
}

func TestAnalyse_TellsEndpointsApart(t *testing.T) {
	streams := journal.Analyse(failover()).ByStream
	if len(streams) != 3 || streams[1].Stream != "open" || streams[1].FailMode != "fail_open" {
		t.Fatalf("streams = %+v", streams)
	}
	// Of 125.1 requests while the store was away 11 passed, and the one that ended it.
	want := map[string]int{"REDIS_TIMEOUT": 11, "EMERGENCY_LOCAL_LIMIT": 114, "ALLOWED": 1}
	if diff := cmp.Diff(want, streams[1].Phases[1].Reasons); diff != "" {
		t.Errorf("during the outage (-want +have):\n%s", diff)
	}
}

func TestAnalyse_ReportsChangesOfVotesOnly(t *testing.T) {
	j := failover()
	for i := range 5 {
		j.Votes = append(j.Votes, journal.Vote{At: time.Duration(i) * second, Sentinel: "sentinel-0", OK: i < 3, Text: "x"})
	}
	v := journal.Analyse(j).Votes
	if len(v) != 2 || !v[0].OK || v[1].OK || v[1].At != 3 {
		t.Errorf("votes = %+v, want the first and that at 3 s", v)
	}
}

func TestReport_SaysMomentsThatNeverCameAsNull(t *testing.T) {
	j := failover()
	j.Events = nil
	b, err := json.Marshal(journal.Analyse(j))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"t1_sdown_seconds":null`, `"t0_fault_seconds":3`, `"category":"master-exit"`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the JSON does not hold %s", want)
		}
	}
}

// A run that was cut short, or that nobody planned, is judged without a crash.
func TestAnalyse_SurvivesAnEmptyJournal(t *testing.T) {
	r := journal.Analyse(&journal.Journal{Plan: journal.Plan{Expect: journal.Failover}})
	if r.Passed {
		t.Error("nothing was seen, and that passed")
	}
	journal.Analyse(&journal.Journal{Plan: journal.Plan{Expect: journal.NoFailover, Calm: true, Blackout: true}})
}
