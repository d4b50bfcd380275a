package load

import (
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// What a histogram can tell apart: 1 us to 1 hour in nanoseconds, to three digits. Longer counts as an hour.
const (
	shortest = int64(time.Microsecond)
	longest  = int64(time.Hour)
	digits   = 3
)

// maxReasons bounds the reasons of one verdict that a shard tells apart, should a service put an identity there.
const (
	maxReasons = 64
	manyMore   = "(other)"
)

// verdict is what an answer means to the caller.
type verdict uint8

const (
	admitted verdict = iota // indexes tally.answers
	overLimit
	failed
	unanswered
	verdicts
)

func (v verdict) String() string { return [...]string{"OK", "OVER_LIMIT", "error", "unanswered"}[v] }

// outcome is the end of one request.
type outcome struct {
	verdict verdict
	// reason is the decision in the answer, or the overall or gRPC code; valid until the next request of its worker.
	reason []byte
	// ordinary is an answer that the service gives while nothing is broken: no error, and not degraded.
	ordinary bool
	// due is when the request should have been sent, sent when it was, and answered when it ended, since the start.
	due, sent, answered time.Duration
}

// shard holds what some of the workers saw. There are a few shards for each core, as histograms for each of a
// thousand workers would take 200 MB; their locks are hardly ever contended.
type shard struct {
	mu      sync.Mutex
	tallies [phases]tally
	delays  *hdrhistogram.Histogram // of sending, in an open loop
	look    look
	// lastAnswer is when the last request was answered, lastAdmitted when one was admitted.
	lastAnswer, lastAdmitted time.Duration
	// firstOrdinary and lastUnordinary are the answers after the end of the fault; 0 if none.
	firstOrdinary, lastUnordinary time.Duration
}

// look is what happened since the last progress report.
type look struct {
	answered, overLimit, errors int64
	worst                       time.Duration
}

// tally counts the answers of one phase.
type tally struct {
	latency  *hdrhistogram.Histogram
	worst    time.Duration
	answers  [verdicts]map[string]*int64
	degraded int64
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(shortest, longest, digits) }

func newShard(cfg Config) *shard {
	s := &shard{}
	for p := range s.tallies {
		if p == int(before) || cfg.Fault != nil {
			s.tallies[p] = newTally()
		}
	}
	if cfg.Rate > 0 {
		s.delays = newHistogram()
	}
	return s
}

func newTally() tally {
	t := tally{latency: newHistogram()}
	for v := range t.answers {
		t.answers[v] = make(map[string]*int64)
	}
	return t
}

// add counts a request whose answer came in phase p; measured is false in the warm-up and keeps it out of the report.
func (s *shard) add(o outcome, p phase, measured bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look.add(o)
	if o.verdict != unanswered {
		s.lastAnswer = max(s.lastAnswer, o.answered)
	}
	if o.verdict == admitted {
		s.lastAdmitted = max(s.lastAdmitted, o.answered)
	}
	if !measured {
		return
	}
	s.tallies[p].add(o)
	if s.delays != nil {
		record(s.delays, o.sent-o.due)
	}
}

// recovery notes an answer that came after the end of the fault.
func (s *shard) recovery(o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !o.ordinary:
		s.lastUnordinary = max(s.lastUnordinary, o.answered)
	case s.firstOrdinary == 0 || o.answered < s.firstOrdinary:
		s.firstOrdinary = o.answered
	}
}

// glance returns what happened since the last glance.
func (s *shard) glance() look {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.look
	s.look = look{}
	return l
}

func (l *look) add(o outcome) {
	l.answered++
	l.worst = max(l.worst, o.answered-o.due)
	switch o.verdict {
	case overLimit:
		l.overLimit++
	case failed, unanswered:
		l.errors++
	case admitted, verdicts:
	}
}

func (l *look) merge(o look) {
	l.answered += o.answered
	l.overLimit += o.overLimit
	l.errors += o.errors
	l.worst = max(l.worst, o.worst)
}

func (t *tally) add(o outcome) {
	latency := o.answered - o.due
	record(t.latency, latency)
	t.worst = max(t.worst, latency)
	if !o.ordinary && o.verdict <= overLimit {
		t.degraded++
	}
	*t.counter(o.verdict, o.reason)++
}

func (t *tally) counter(v verdict, reason []byte) *int64 {
	known := t.answers[v]
	if n, ok := known[string(reason)]; ok { // does not allocate
		return n
	}
	if len(known) >= maxReasons {
		reason = []byte(manyMore)
	}
	n, ok := known[string(reason)]
	if !ok {
		n = new(int64)
		known[string(reason)] = n
	}
	return n
}

// merge adds what another tally counted.
func (t *tally) merge(o *tally) {
	if o.latency == nil {
		return
	}
	t.latency.Merge(o.latency)
	t.worst = max(t.worst, o.worst)
	t.degraded += o.degraded
	for v := range o.answers {
		for reason, n := range o.answers[v] {
			*t.counter(verdict(v), []byte(reason)) += *n
		}
	}
}

// count is the number of requests that ended with v.
func (t *tally) count(v verdict) (sum int64) {
	for _, n := range t.answers[v] {
		sum += *n
	}
	return sum
}

func (t *tally) list() []Answer {
	list := []Answer{}
	for v := range t.answers {
		for reason, n := range t.answers[v] {
			list = append(list, Answer{Answer: verdict(v).String(), Reason: reason, Requests: *n})
		}
	}
	slices.SortFunc(list, compareAnswers)
	return list
}

func record(h *hdrhistogram.Histogram, d time.Duration) {
	// Within these bounds RecordValue has no error to return.
	_ = h.RecordValue(min(max(int64(d), 0), longest))
}
