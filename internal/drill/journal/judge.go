package journal

import (
	"fmt"
	"slices"
	"time"
)

// settle is how long after T5 single decisions may still go without the store: the circuit breaker lets one probe
// through before it lets all.
const settle = time.Second

// straysAllowed is the share of decisions that may go without the store when all is well: the budget is short, and a
// machine that is busy with Redis, the service and the load at once does not always keep it.
const straysAllowed = 0.01

// checks are the judgements that the plan asks for.
func (j *Journal) checks(r *Report) []Check {
	var list []Check
	if len(j.Streams) > 0 {
		list = append(list, j.checkTable(), j.checkLatency())
	}
	if j.Plan.MaxInFlight > 0 {
		list = append(list, j.checkInFlight(r))
	}
	for _, l := range r.Ledgers {
		list = append(list, checkLedger(l))
		if j.Plan.Expect != 0 {
			list = append(list, checkEnforced(l))
		}
	}
	for _, e := range r.Emergency {
		list = append(list, Check{
			Name: "emergency admissions of " + e.Stream, Want: fmt.Sprintf("at most %.0f", e.Bound),
			Got: fmt.Sprint(e.Admitted), Passed: e.Holds(),
		})
	}
	switch j.Plan.Expect {
	case Failover:
		list = append(list, j.checkFailover(r)...)
	case NoFailover:
		list = append(list, j.checkNoFailover(r)...)
	}
	if j.Plan.Calm {
		list = append(list, j.checkOrdinary("decisions stay ordinary throughout", j.Warm, everybody))
	}
	for i, s := range j.Streams {
		if s.Bystander {
			name := "decisions of " + s.Name + ", which nothing befell, stay ordinary"
			list = append(list, j.checkOrdinary(name, j.Warm, from(i)))
		}
	}
	return list
}

func (j *Journal) checkTable() Check {
	outside, example := 0, ""
	for _, a := range j.Answers {
		if a.Outside() {
			outside++
			example = fmt.Sprintf(", such as %s %s at %s", a.Verdict, a.Reason, Short(a.At))
		}
	}
	return Check{
		Name: "answers outside the decision table", Want: fmt.Sprintf("0 of %d", len(j.Answers)),
		Got: fmt.Sprint(outside) + example, Passed: outside == 0 && len(j.Answers) > 0,
	}
}

// checkLatency takes from each answer what the machine cost the drill itself around it.
func (j *Journal) checkLatency() Check {
	bound := j.Plan.Budget + j.Plan.Margin
	stalls := newStalls(j.Stalls)
	var worst, own time.Duration
	for _, a := range j.Answers {
		if a.Due < j.Warm {
			continue
		}
		worst = max(worst, a.Latency())
		own = max(own, a.Latency()-stalls.around(a))
	}
	c := Check{
		Name: "no decision later than the budget and its margin",
		Want: fmt.Sprintf("at most %s (budget %s, margin %s)", Short(bound), Short(j.Plan.Budget), Short(j.Plan.Margin)),
		Got:  Short(worst), Passed: own <= bound,
	}
	if worst > bound {
		c.Got += fmt.Sprintf(", %s without the delays of this machine", Short(own))
	}
	return c
}

func (j *Journal) checkInFlight(r *Report) Check {
	return Check{
		Name: "decisions in flight", Want: fmt.Sprintf("at most %d", j.Plan.MaxInFlight),
		Got:    fmt.Sprintf("%d in %d looks", r.MaxInFlight, len(j.Service)),
		Passed: r.MaxInFlight <= j.Plan.MaxInFlight && len(j.Service) > 0,
	}
}

func checkLedger(l Ledger) Check {
	return Check{
		Name: "admissions of " + l.Stream,
		Want: fmt.Sprintf("at most %.0f, and %.0f that a failover may have lost", l.Limit, l.MayBeLost),
		Got:  fmt.Sprintf("%d, over by %.0f", l.Admitted, l.Over), Passed: l.Holds(),
	}
}

func checkEnforced(l Ledger) Check {
	c := Check{
		Name: "the limit of " + l.Stream + " is enforced in the end", Want: "it denies", Got: "no denial was seen",
		Passed: l.DeniedAfter,
	}
	if c.Passed {
		c.Got = "it denies"
	}
	return c
}

func (j *Journal) checkFailover(r *Report) []Check {
	m, p := r.Marks, j.Plan
	decides := within("the new master decides (T5 after +switch-master)", r.AfterSwitch, p.DecideWithin)
	if p.Blackout {
		decides = within("the new master decides (T5 after mending)", m.Decided.Since(m.Mended), p.DecideWithin)
	}
	list := []Check{
		within("a replica is promoted (T4-T0)", m.Promoted.Or(m.Switch).Since(m.Fault), p.PromoteWithin),
		j.checkOnce(), decides,
		within("all nodes are healthy (T6 after mending)", m.Healthy.Since(m.Mended), p.SettleWithin),
		j.checkOldMaster(),
	}
	if m.Decided.Happened {
		list = append(list, j.checkOrdinary("decisions are ordinary again", m.Decided.At+settle, everybody))
	}
	return list
}

// checkOnce counts the masters that were announced. A second failover on the heels of the first moves the master to a
// replica that may not have followed yet.
func (j *Journal) checkOnce() Check {
	var promoted []string
	for _, e := range j.Events {
		if e.Means() == EventPromoted && !slices.Contains(promoted, e.Text) {
			promoted = append(promoted, e.Text)
		}
	}
	return Check{
		Name: "one failover, not several", Want: "one promotion", Got: fmt.Sprintf("%d", len(promoted)),
		Passed: len(promoted) == 1,
	}
}

func (j *Journal) checkOldMaster() Check {
	c := Check{Name: "the old master came back as a replica", Want: "a replica whose link is up", Got: "no look at it"}
	if n := len(j.Rounds); n > 0 {
		s := j.Rounds[n-1].node(j.Plan.Master)
		c.Passed = s.Error == "" && !s.Master && s.LinkUp
		c.Got = describe(s)
	}
	return c
}

func (j *Journal) checkNoFailover(r *Report) []Check {
	c := Check{Name: "no failover happens", Want: "no leader, no promotion, the same master", Passed: true}
	for _, e := range j.Events {
		if e.Name == EventLeader || e.Means() == EventPromoted || e.Means() == EventSwitch {
			c.Passed = false
			c.Got = fmt.Sprintf("%s by %s at %s", e.Name, e.Source, Short(e.At))
		}
	}
	if c.Passed {
		s := NodeState{Error: "no look at it"}
		if n := len(j.Rounds); n > 0 {
			s = j.Rounds[n-1].node(j.Plan.Master)
		}
		c.Passed = s.Error == "" && s.Master
		c.Got = "none; " + j.Plan.Master + " is " + describe(s)
	}
	list := []Check{
		c,
		within("all nodes are healthy (T6 after mending)", r.Marks.Healthy.Since(r.Marks.Mended), j.Plan.SettleWithin),
	}
	if j.Plan.Blackout && r.Marks.Mended.Happened {
		list = append(list, j.checkOrdinary("decisions are ordinary again", r.Marks.Mended.At+settle, everybody))
	}
	return list
}

// checkOrdinary is about requests that were due from a moment on. Those that a stall of the machine may have cost their
// budget are not held against the service.
func (j *Journal) checkOrdinary(name string, from time.Duration, of func(Answer) bool) Check {
	all, strays, excused := 0, 0, 0
	stalls := newStalls(j.Stalls)
	for _, a := range j.Answers {
		if a.Due < from || !of(a) {
			continue
		}
		all++
		switch {
		case !a.Degraded():
		case stalls.around(a) > j.Plan.Budget/2:
			excused++
		default:
			strays++
		}
	}
	got := fmt.Sprintf("all but %d of %d", strays, all)
	if excused > 0 {
		got += fmt.Sprintf(", and %d while this machine stalled", excused)
	}
	return Check{
		Name: name, Want: fmt.Sprintf("at least %.0f %% of them", 100*(1-straysAllowed)),
		Got:    got,
		Passed: all > excused && float64(strays) <= straysAllowed*float64(all),
	}
}

func within(name string, took Moment, bound time.Duration) Check {
	return Check{
		Name: name, Want: "within " + Short(bound), Got: took.String(), Passed: took.Happened && took.At <= bound,
	}
}

func describe(s NodeState) string {
	switch {
	case s.Error != "":
		return s.Error
	case s.Master:
		return "a master"
	case s.LinkUp:
		return "a replica whose link is up"
	default:
		return "a replica whose link is down"
	}
}
