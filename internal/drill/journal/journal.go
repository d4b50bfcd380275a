// Package journal holds what a drill saw, second by second, and says what that proves: when the fault was noticed,
// when decisions came back, whether any bound was broken.
//
// It is data and arithmetic. It knows no socket, no clock and no terminal, so that the judgement of a run can be
// tested without the run. A Journal is filled by one goroutine at a time and only read by Analyse.
package journal

import (
	"cmp"
	"slices"
	"time"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// Journal is what a drill saw. Every moment is counted from Started.
type Journal struct {
	// Plan is what was meant to happen.
	Plan Plan
	// Started is when the load began.
	Started time.Time
	// Warm is when it had run long enough for its figures to count; admissions count from the first request.
	Warm time.Duration
	// End is when the last answer was in.
	End time.Duration
	// Streams are the parts of the load; Answer.Stream indexes them.
	Streams []Stream
	// Answers are all that came back, in any order until Sort.
	Answers []Answer
	// NotOffered counts requests that were due and could not be sent, because the generator fell behind.
	NotOffered int64
	// Acts are what the drill did to the topology.
	Acts []Act
	// Events are what the Sentinels, or the nodes of a Cluster, said.
	Events []Event
	// Service are looks at the service's own state.
	Service []ServiceSample
	// Rounds are looks at all data nodes.
	Rounds []Round
	// Votes are what CKQUORUM answered.
	Votes []Vote
	// Checks are judgements that needed the live topology, made while it ran.
	Checks []Check
	// Stalls are what the machine cost the drill itself.
	Stalls []Stall
}

// Sort puts everything in order of time; Analyse expects that.
func (j *Journal) Sort() {
	slices.SortStableFunc(j.Answers, func(a, b Answer) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(j.Acts, func(a, b Act) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(j.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(j.Service, func(a, b ServiceSample) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(j.Rounds, func(a, b Round) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(j.Stalls, func(a, b Stall) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(j.Votes, func(a, b Vote) int { return cmp.Compare(a.At, b.At) })
}

// act is when the drill first did something of that kind.
func (j *Journal) act(k ActKind) Moment {
	for _, a := range j.Acts {
		if a.Kind == k {
			return Seen(a.At)
		}
	}
	return Moment{}
}

// ordinary is whether the store decided: the two reasons that need it.
func ordinary(reason string) bool {
	return reason == failure.Allowed.String() || reason == failure.RateLimited.String()
}
