package journal

import (
	"sort"
	"time"
)

// Stall is a time for which the drill did not get a processor that it had asked for. What a machine does to the
// observer it does to the observed.
type Stall struct {
	// At is when the drill ran again, Late how long it had waited.
	At, Late time.Duration
}

// aftermath is how long a stall still counts: what piled up in it has to be worked off.
const aftermath = 250 * time.Millisecond

// stalls adds up what the machine cost around each answer.
type stalls struct {
	at  []time.Duration
	sum []time.Duration // of all up to and including the one at that index
}

func newStalls(list []Stall) stalls {
	s := stalls{}
	var sum time.Duration
	for _, one := range list {
		sum += one.Late
		s.at, s.sum = append(s.at, one.At), append(s.sum, sum)
	}
	return s
}

// around is what the machine cost while a request was under way, and shortly before.
func (s stalls) around(a Answer) time.Duration {
	return s.upTo(a.At+aftermath) - s.upTo(a.Due-aftermath)
}

func (s stalls) upTo(t time.Duration) time.Duration {
	i := sort.Search(len(s.at), func(i int) bool { return s.at[i] > t })
	if i == 0 {
		return 0
	}
	return s.sum[i-1]
}

// longestStall is the worst of them.
func (j *Journal) longestStall() (longest time.Duration) {
	for _, s := range j.Stalls {
		longest = max(longest, s.Late)
	}
	return longest
}
