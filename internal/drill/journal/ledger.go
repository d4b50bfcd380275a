package journal

import (
	"math"
	"time"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// Ledger holds the admissions of one bucket against what it may admit. Its bound is
//
//	burst + rate x time + min(burst + rate x window, admitted in the window)
//
// where the window is the part of the run whose writes the new master may never have received: the replication lag
// before the fault, and after it, if the old master could still be reached, the time until min-replicas-to-write
// stopped it. Without a failover nothing is lost and the last term is 0.
type Ledger struct {
	// Stream is the endpoint's id.
	Stream string `json:"stream"`
	// Admitted are the requests that the store admitted.
	Admitted int `json:"admitted_requests"`
	// Limit is burst + rate x time.
	Limit float64 `json:"limit_requests"`
	// Window is the length of the window, 0 without a failover.
	Window float64 `json:"window_seconds"`
	// InWindow are the requests admitted in it.
	InWindow int `json:"admitted_in_window_requests"`
	// MayBeLost is the last term of the formula.
	MayBeLost float64 `json:"may_be_lost_requests"`
	// Over is by how many requests Admitted exceeds Limit: what really was lost. 0 if it does not.
	Over float64 `json:"over_requests"`
	// DeniedAfter is whether the bucket denied again after the last mark: the limit is enforced.
	DeniedAfter bool `json:"denied_after"`
}

// Holds is whether no more was admitted than the formula allows.
func (l Ledger) Holds() bool { return float64(l.Admitted) <= l.Limit+l.MayBeLost }

func (j *Journal) ledgers(m Marks) []Ledger {
	var list []Ledger
	for i, s := range j.Streams {
		if s.Ration != nil {
			list = append(list, j.ledger(i, m))
		}
	}
	return list
}

func (j *Journal) ledger(stream int, m Marks) Ledger {
	s := j.Streams[stream]
	l := Ledger{Stream: s.Name}
	from, to := j.window(m)
	settled := m.Decided.Or(m.Fault)
	var first, last Moment
	for _, a := range j.Answers {
		if a.Stream != stream {
			continue
		}
		switch a.Reason {
		case failure.Allowed.String():
			l.Admitted++
			first, last = first.Or(Seen(a.Sent)), Seen(max(last.At, a.At))
			if a.At >= from && a.At < to {
				l.InWindow++
			}
		case failure.RateLimited.String():
			l.DeniedAfter = l.DeniedAfter || settled.Happened && a.At >= settled.At
		}
	}
	l.Limit = s.Ration.Burst + math.Ceil(s.Ration.PerSecond*(last.At-first.At).Seconds())
	l.Window = (to - from).Seconds()
	l.MayBeLost = min(s.Ration.Burst+math.Ceil(s.Ration.PerSecond*l.Window), float64(l.InWindow))
	l.Over = max(0, float64(l.Admitted)-l.Limit)
	return l
}

// Enforced is whether every ration has denied since the last mark, for whoever waits for it while the run goes on.
func (j *Journal) Enforced() bool {
	for _, l := range j.ledgers(j.marks()) {
		if !l.DeniedAfter {
			return false
		}
	}
	return true
}

// window is the part of the run whose writes may be lost; it is empty without a failover, and all that was before if
// the store was emptied.
func (j *Journal) window(m Marks) (from, to time.Duration) {
	if j.Plan.Emptied {
		return 0, m.Mended.Or(Seen(j.End)).At
	}
	if !m.Switch.Happened && !m.Promoted.Happened {
		return 0, 0
	}
	to = m.Fault.At + j.Plan.SplitBrain
	if m.Decided.Happened {
		to = min(to, m.Decided.At)
	}
	return m.Fault.At - j.Plan.Loss, to
}
