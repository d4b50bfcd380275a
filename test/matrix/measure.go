package main

import (
	"math"
	"slices"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

const (
	// leastWindow is how much of the run counts as the fault, however soon it is over.
	leastWindow = 500 * time.Millisecond
	// strays is the share of answers that may go without the store while all is well; internal/drill allows as many.
	strays = 0.01
)

// The names under which answers are counted: the fail modes of the endpoints whose bucket is on the node that the fault
// happens to, and those of the other shards of a Cluster.
const (
	failClosed = "fail_closed"
	failOpen   = "fail_open"
	elsewhere  = "other shards"
)

// figures are what one run of a fault has shown. Times are in seconds.
type figures struct {
	// Requests are all of the run, Outside those whose answer the decision table does not have.
	Requests, Outside int
	// Without is the longest time in which the store decided nothing.
	Without float64
	// Back is the time from the healing to the first decision by the store, Settled until no more than strays are decided
	// elsewhere. Both are -1 if that never came, and 0 for a fault that nobody has to heal.
	Back, Settled float64
	// Modes are the answers during the fault, by the names above.
	Modes map[string]answers
	// Admitted is what the rationed bucket admitted beyond its limit, Bound what the fault may have cost it.
	Admitted, Bound float64
	// Blind is what the fail_open endpoint admitted without the store, BlindBound the bound on that.
	Blind, BlindBound float64
	// Strip is for the timeline.
	Strip strip
	// Stall is the longest time for which the load generator itself waited for a processor.
	Stall float64
	// Failures are the expectations that were not met.
	Failures []string
}

// answers are those of one kind of endpoint during the fault. Latencies count from when a request was due, in seconds.
type answers struct {
	Count           int
	ByReason        map[string]int
	P50, P99, Worst float64
}

// measure reads a run.
func measure(j *journal.Journal, r *journal.Report, v variant) figures {
	m := measurement{j: j, marks: r.Marks, variant: v}
	healed := m.healed()
	back := m.firstDecision(healed)
	without, _ := m.pause()
	f := figures{
		Requests: len(j.Answers), Without: without.Seconds(), Back: -1, Settled: -1,
		Modes: map[string]answers{}, Strip: m.strip(healed), Stall: r.Stall,
	}
	if back.Happened {
		f.Back = max(0, back.At-healed.At).Seconds()
		f.Settled = max(f.Back, (m.settled() - healed.At).Seconds())
	}
	from, to := m.window(healed, back)
	for _, mode := range []string{failClosed, failOpen, elsewhere} {
		if a := m.answers(mode, from, to); a.Count > 0 {
			f.Modes[mode] = a
		}
	}
	for _, a := range j.Answers {
		if a.Outside() {
			f.Outside++
		}
	}
	for _, l := range r.Ledgers {
		f.Admitted, f.Bound = l.Over, l.MayBeLost
	}
	for _, e := range r.Emergency {
		f.Blind, f.BlindBound = float64(e.Admitted), e.Bound
	}
	f.Failures = failures(r, f)
	return f
}

// failures are the checks of the drill that did not hold, and what only the matrix looks at.
func failures(r *journal.Report, f figures) []string {
	var list []string
	for _, c := range r.Checks {
		if !c.Passed {
			list = append(list, c.Name+": "+c.Got+", want "+c.Want)
		}
	}
	if f.Back < 0 {
		list = append(list, "the store never decided again")
	}
	return list
}

// measurement is a run that is being read.
type measurement struct {
	variant
	j     *journal.Journal
	marks journal.Marks
}

// healed is what the recovery counts from: the fault itself if nobody should notice it.
func (m measurement) healed() journal.Moment {
	switch m.ending {
	case failover:
		return m.marks.Switch.Or(m.marks.Promoted)
	case outage:
		return m.marks.Mended
	default:
		return m.marks.Fault
	}
}

// firstDecision is the first by the store after the healing: by the new master, if there is one.
func (m measurement) firstDecision(healed journal.Moment) journal.Moment {
	if m.orderly {
		// The old master decides, too, so that the first decision after the longest pause is the new one's.
		_, second := m.pause()
		return second
	}
	if m.ending == failover {
		return m.marks.Decided
	}
	for _, a := range m.j.Answers {
		if healed.Happened && a.At >= healed.At && m.decided(a) {
			return journal.Seen(a.At)
		}
	}
	return journal.Moment{}
}

// decided is whether the store has admitted that request. A denial may be from the service's memory.
func (m measurement) decided(a journal.Answer) bool {
	return m.mode(a) != elsewhere && a.Reason == failure.Allowed.String()
}

// mode is the name that an answer counts under; the rationed bucket, whose endpoint fails closed, has none.
func (m measurement) mode(a journal.Answer) string {
	s := m.j.Streams[a.Stream]
	switch {
	case s.Bystander:
		return elsewhere
	case s.Ration != nil:
		return ""
	default:
		return s.FailMode
	}
}

// pause is the longest time between two decisions by the store, of which the second came after the fault; the second
// is when that was, if it ever was.
func (m measurement) pause() (longest time.Duration, second journal.Moment) {
	last := m.j.Warm
	for _, a := range m.j.Answers {
		if !m.decided(a) || a.At < m.j.Warm {
			continue
		}
		if a.At >= m.marks.Fault.At && a.At-last > longest {
			longest, second = a.At-last, journal.Seen(a.At)
		}
		last = a.At
	}
	if m.j.End-last > longest {
		return m.j.End - last, journal.Moment{}
	}
	return longest, second
}

// settled is from when on no more than strays are decided elsewhere.
func (m measurement) settled() time.Duration {
	all, degraded := 0, 0
	settled := m.j.End
	for _, a := range slices.Backward(m.j.Answers) {
		if a.At < m.marks.Fault.At {
			break
		}
		all++
		if a.Degraded() {
			degraded++
		}
		if float64(degraded) <= strays*float64(all) {
			settled = a.At
		}
	}
	return settled
}

// window is the part of the run that counts as the fault.
func (m measurement) window(healed, back journal.Moment) (from, to time.Duration) {
	from = m.marks.Fault.At
	to = max(back.Or(journal.Seen(m.j.End)).At, from+leastWindow)
	if m.ending == unnoticed {
		to = max(to, m.marks.Mended.Or(healed).At)
	}
	return from, to
}

func (m measurement) answers(mode string, from, to time.Duration) answers {
	list := answers{ByReason: map[string]int{}}
	var latencies []time.Duration
	for _, a := range m.j.Answers {
		if a.Due < from || a.Due >= to || m.mode(a) != mode {
			continue
		}
		list.Count++
		list.ByReason[status(a)+" "+a.Reason]++
		latencies = append(latencies, a.Latency())
	}
	slices.Sort(latencies)
	list.P50, list.P99, list.Worst = quantile(latencies, 0.5), quantile(latencies, 0.99), quantile(latencies, 1)
	return list
}

// status is what the caller sees of an answer, as README.md's table has it.
func status(a journal.Answer) string {
	switch {
	case a.Verdict == journal.Failed:
		return "error"
	case a.Verdict == journal.Admitted:
		return "200"
	case a.Reason == failure.RateLimited.String() || a.Reason == failure.EmergencyLocalLimit.String():
		return "429"
	default:
		return "503"
	}
}

// quantile is the smallest value, in seconds, that the share q of all is not above.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)].Seconds()
}
