package preflight

import (
	"cmp"
	"slices"
	"time"
)

// candidate is a replica as Sentinel sees it when it looks for a new master.
type candidate struct {
	address string
	// down is set if Sentinel takes it for down (SDOWN), away if it cannot be reached or does not answer INFO.
	down, away bool
	// priority is its replica-priority; 0 is never promoted.
	priority int64
	// offset is how much of the master's stream it has.
	offset int64
	runID  string
	// cutOff is how long it has had no link to the master.
	cutOff time.Duration
}

// refusal is why the first phase of the election drops the candidate; empty if it does not.
func (c candidate) refusal(downAfter, masterDown time.Duration) string {
	switch {
	case c.down:
		return "is down"
	case c.away:
		return "cannot be reached"
	case c.priority == 0:
		return "has priority 0"
	case c.cutOff > 10*downAfter+masterDown:
		return "has been cut off from the master for too long"
	default:
		return ""
	}
}

// election is who could be promoted, best first, and who not and why.
type election struct {
	eligible []candidate
	refused  map[string]string
}

// elect does what a Sentinel leader does: it drops those that are down, unreachable, of priority 0 or cut off for
// longer than 10 x down-after and the time that the master has been down, and sorts the rest by lower priority, higher
// offset and smaller run ID (specification, "Replica Selection Algorithm").
func elect(all []candidate, downAfter, masterDown time.Duration) election {
	e := election{refused: map[string]string{}}
	for _, c := range all {
		if why := c.refusal(downAfter, masterDown); why != "" {
			e.refused[c.address] = why
			continue
		}
		e.eligible = append(e.eligible, c)
	}
	slices.SortStableFunc(e.eligible, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(a.priority, b.priority),
			cmp.Compare(b.offset, a.offset),
			cmp.Compare(a.runID, b.runID),
		)
	})
	return e
}
