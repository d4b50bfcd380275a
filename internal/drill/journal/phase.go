package journal

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Phase is what came back in a part of the run.
type Phase struct {
	// Name is before, during or after, the outage.
	Name string `json:"name"`
	// Seconds is how long it lasted.
	Seconds float64 `json:"seconds"`
	// Requests are those that were due in it.
	Requests int `json:"requests"`
	// Reasons counts them by reason.
	Reasons map[string]int `json:"reasons"`
	// P50, P99 and Worst are of the time from when a request was due to its answer.
	P50   float64 `json:"p50_seconds"`
	P99   float64 `json:"p99_seconds"`
	Worst float64 `json:"worst_seconds"`
}

// phases cuts the run in three: the outage begins with the fault and ends with the first decision by the new master,
// else with the mending.
func (j *Journal) phases(m Marks, of func(Answer) bool) []Phase {
	from, to := j.End, j.End
	if m.Fault.Happened {
		from = m.Fault.At
		to = min(m.Decided.Or(m.Mended).Or(Seen(j.End)).At, j.End)
	}
	bounds := []time.Duration{min(j.Warm, from), from, to, j.End}
	list := make([]Phase, 0, len(bounds)-1)
	for i, name := range []string{"before", "during", "after"} {
		list = append(list, j.phase(name, bounds[i], bounds[i+1], of))
	}
	return list
}

// everybody is every answer.
func everybody(Answer) bool { return true }

// from is every answer to one stream.
func from(stream int) func(Answer) bool { return func(a Answer) bool { return a.Stream == stream } }

func (j *Journal) phase(name string, from, to time.Duration, of func(Answer) bool) Phase {
	p := Phase{Name: name, Seconds: (to - from).Seconds(), Reasons: map[string]int{}}
	var latencies []time.Duration
	for _, a := range j.Answers {
		if a.Due >= from && a.Due < to && of(a) {
			p.Requests++
			p.Reasons[a.Reason]++
			latencies = append(latencies, a.Latency())
		}
	}
	slices.Sort(latencies)
	p.P50, p.P99 = quantile(latencies, 0.5).Seconds(), quantile(latencies, 0.99).Seconds()
	p.Worst = quantile(latencies, 1).Seconds()
	return p
}

// quantile is the smallest value that the share q of all is not above; sorted is in order.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// ReasonOrder sorts reasons as the table lists them, the unknown last.
func ReasonOrder(a, b string) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}
