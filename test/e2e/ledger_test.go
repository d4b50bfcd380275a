package e2e_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// proved is the ledger of this run.
var proved = &ledger{seen: map[string]bool{}}

// ledger keeps which decisions were asserted, so that a row that somebody loses is missed. It is safe for concurrent
// use.
type ledger struct {
	mu   sync.Mutex
	seen map[string]bool
}

// labels of a decision, in the order in which the service exports them.
var labels = regexp.MustCompile(`answer="(.*?)",cause="(.*?)",.*reason="(.*?)"`)

// add notes the decisions among counted.
func (l *ledger) add(counted counts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for series := range counted {
		if m := labels.FindStringSubmatch(series); m != nil {
			answer, cause, reason := m[1], m[2], m[3]
			l.seen["cause "+cause] = true
			l.seen[cell(outcomeOf(cause), reason, answer)] = true
		}
		if strings.HasPrefix(series, unmatchedTotal) {
			l.seen["cause "+failure.CauseUnmatched.String()] = true
		}
	}
}

func outcomeOf(cause string) failure.Outcome {
	for _, c := range failure.Causes() {
		if c.String() == cause {
			return c.Outcome()
		}
	}
	return 0
}

func cell(o failure.Outcome, reason, answer string) string {
	return fmt.Sprintf("%v: %s answered %s", o, reason, answer)
}

// unprovoked are the causes that a trial cannot bring about on purpose, and why.
var unprovoked = map[failure.Cause]string{
	failure.CauseQueueFull:    "4096 requests must arrive faster than the budget lets them go",
	failure.CauseDropped:      "it takes the same millisecond as the deadline, which callers see first",
	failure.CauseNotConnected: "it lasts only until the first dial has ended, and calls wait for that",
	failure.CauseClosed:       "it lasts only from the end of the service to the end of its process",
}

// cells are the cells of the decision table, copied from the specification by hand.
var cells = []string{
	cell(failure.Success, "ALLOWED", "ok"),
	cell(failure.Success, "RATE_LIMITED", "over_limit"),
	cell(failure.Timeout, timeout, "ok"),
	cell(failure.Timeout, failClosed, "unavailable"),
	cell(failure.ConnectionError, connection, "ok"),
	cell(failure.ConnectionError, emergencyLimit, "over_limit"),
	cell(failure.ConnectionError, failClosed, "unavailable"),
	cell(failure.NoScript, noScript, "ok"),
	cell(failure.NoScript, failClosed, "unavailable"),
	cell(failure.BreakerOpen, circuit, "ok"),
	cell(failure.BreakerOpen, emergencyLimit, "over_limit"),
	cell(failure.BreakerOpen, circuit, "unavailable"),
}

// missing lists the causes and cells that no test has asserted.
func (l *ledger) missing() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	want := slices.Clone(cells)
	for _, c := range failure.Causes() {
		if _, excused := unprovoked[c]; !excused {
			want = append(want, "cause "+c.String())
		}
	}
	return slices.DeleteFunc(want, func(w string) bool { return l.seen[w] })
}
