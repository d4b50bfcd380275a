package drill

import (
	"sync"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

// recorder lets everybody who watches write into one journal. It is safe for concurrent use.
type recorder struct {
	mu      sync.Mutex
	journal *journal.Journal
	stopped bool
}

func newRecorder(plan journal.Plan, streams []journal.Stream) *recorder {
	return &recorder{journal: &journal.Journal{Plan: plan, Streams: streams, Started: time.Now()}}
}

// now is the time since the start.
func (r *recorder) now() time.Duration { return time.Since(r.journal.Started) }

// at counts a moment from the start.
func (r *recorder) at(t time.Time) time.Duration { return t.Sub(r.journal.Started) }

// write changes the journal, unless it is finished.
func (r *recorder) write(change func(*journal.Journal)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		change(r.journal)
	}
}

// read looks at the journal as it is now.
func (r *recorder) read(look func(*journal.Journal)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	look(r.journal)
}

func (r *recorder) act(kind journal.ActKind, text string) {
	at := r.now()
	r.write(func(j *journal.Journal) { j.Acts = append(j.Acts, journal.Act{At: at, Kind: kind, Text: text}) })
}

func (r *recorder) check(c journal.Check) {
	r.write(func(j *journal.Journal) { j.Checks = append(j.Checks, c) })
}

// finish closes the journal: nothing is written any more.
func (r *recorder) finish() *journal.Journal {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	return r.journal
}

// sawEvent is whether an event of that name has come since the moment.
func (r *recorder) sawEvent(name string, since time.Duration) (seen bool) {
	r.read(func(j *journal.Journal) {
		for _, e := range j.Events {
			seen = seen || e.Means() == name && e.At >= since
		}
	})
	return seen
}

// lastVotes are the newest votes by Sentinel, of those that came since the moment.
func (r *recorder) lastVotes(since time.Duration) map[string]bool {
	votes := map[string]bool{}
	r.read(func(j *journal.Journal) {
		for _, v := range j.Votes {
			if v.At >= since {
				votes[v.Sentinel] = v.OK
			}
		}
	})
	return votes
}

// fault is when the fault was injected; 0 if it was not yet.
func (r *recorder) fault() (at time.Duration) {
	r.read(func(j *journal.Journal) {
		for _, a := range j.Acts {
			if a.Kind == journal.Injected {
				at = a.At
				return
			}
		}
	})
	return at
}
