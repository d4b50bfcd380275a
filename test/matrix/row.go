package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill"
	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

// shown is a row with everything that a table needs of it.
type shown struct {
	row
	fault
	variant
	on drill.Topology
}

// rows are those that were measured, in the order of the tables.
func (r *results) rows(on drill.Topology) []shown {
	var list []shown
	for _, f := range faults() {
		v, played := f.cases[on]
		if measured, ok := r.Rows[key(on, f)]; ok && played && len(measured.Runs) > 0 {
			list = append(list, shown{row: measured, fault: f, variant: v, on: on})
		}
	}
	return list
}

// mark is what a table says of a row that missed an expectation.
func (s shown) mark() string {
	if s.failed() {
		return "**FAILED**: "
	}
	return ""
}

// brief is the cell of the summary: what a reader grasps in a second.
func (s shown) brief() string {
	out := median(s.Runs, func(f figures) float64 { return f.Without })
	back := "back in " + median(s.Runs, func(f figures) float64 { return f.Back })
	if strings.HasSuffix(back, never) {
		back = "and never back"
	}
	switch s.ending {
	case unnoticed:
		return s.mark() + "not noticed"
	case failover:
		return s.mark() + "failover, " + out + ", " + back
	default:
		return s.mark() + out + ", " + back
	}
}

func (s shown) without() string {
	if s.ending == unnoticed && s.degraded() == 0 {
		return "0"
	}
	return over(s.Runs, func(f figures) float64 { return f.Without })
}

func (s shown) back() string    { return s.recovery(func(f figures) float64 { return f.Back }) }
func (s shown) settled() string { return s.recovery(func(f figures) float64 { return f.Settled }) }

func (s shown) recovery(figure func(figures) float64) string {
	if s.ending == unnoticed {
		return "-"
	}
	return over(s.Runs, figure)
}

// degraded are the answers during the fault that somebody else than the store decided, where the fault happened.
func (s shown) degraded() (n int) {
	for _, mode := range []string{failClosed, failOpen} {
		for reason, count := range s.reasons(mode) {
			if _, name, _ := strings.Cut(reason, " "); (journal.Answer{Reason: name}).Degraded() {
				n += count
			}
		}
	}
	return n
}

// reasons adds up what came back during the fault.
func (s shown) reasons(mode string) map[string]int {
	sum := map[string]int{}
	for _, f := range s.Runs {
		for reason, count := range f.Modes[mode].ByReason {
			sum[reason] += count
		}
	}
	return sum
}

// answers writes "200 ALLOWED 97 %, 503 FAIL_CLOSED 3 %", in the order of the decision table.
func (s shown) answers(mode string) string {
	sum := s.reasons(mode)
	all := 0
	for _, n := range sum {
		all += n
	}
	order := func(a, b string) int {
		_, nameA, _ := strings.Cut(a, " ")
		_, nameB, _ := strings.Cut(b, " ")
		return cmp.Or(journal.ReasonOrder(nameA, nameB), cmp.Compare(a, b))
	}
	var parts []string
	for _, reason := range slices.SortedFunc(maps.Keys(sum), order) {
		code, name, _ := strings.Cut(reason, " ")
		parts = append(parts, fmt.Sprintf("%s `%s` %s", code, name, percent(sum[reason], all)))
	}
	return strings.Join(parts, ", ")
}

// latency is of the answers during the fault.
func (s shown) latency(mode string, figure func(answers) float64) string {
	return over(s.Runs, func(f figures) float64 { return figure(f.Modes[mode]) })
}

func (s shown) outside() (n int) {
	for _, f := range s.Runs {
		n += f.Outside
	}
	return n
}

// admitted is the worst run's over-admission with the bound of that run.
func (s shown) admitted() string {
	return worst(s.Runs, func(f figures) (float64, float64) { return f.Admitted, f.Bound })
}

// blind is the same for what passed without the store.
func (s shown) blind() string {
	return worst(s.Runs, func(f figures) (float64, float64) { return f.Blind, f.BlindBound })
}

func worst(runs []figures, figure func(figures) (float64, float64)) string {
	var value, bound float64
	for i, f := range runs {
		if v, b := figure(f); i == 0 || v-b > value-bound {
			value, bound = v, b
		}
	}
	return fmt.Sprintf("%.0f (≤ %.0f)", value, bound)
}

// line is for whoever watches.
func (s shown) line() string {
	if s.failed() {
		return "FAILED"
	}
	return s.brief()
}

// never stands for a time that has not come to an end.
const never = "never"

// over is the median of a figure, in seconds, with the smallest and the largest if there were several runs.
func over(runs []figures, figure func(figures) float64) string {
	values := sorted(runs, figure)
	text := median(runs, figure)
	least, most := span(values[0]), span(values[len(values)-1])
	if values[0] < 0 || least == most {
		return text
	}
	return fmt.Sprintf("%s [%s-%s]", text, least, most)
}

// median is that of a figure in seconds. A negative one is missing, and one that is missing is missed.
func median(runs []figures, figure func(figures) float64) string {
	values := sorted(runs, figure)
	n := len(values)
	if values[0] < 0 {
		return never
	}
	return span((values[(n-1)/2] + values[n/2]) / 2)
}

func sorted(runs []figures, figure func(figures) float64) []float64 {
	values := make([]float64, len(runs))
	for i, f := range runs {
		values[i] = figure(f)
	}
	slices.Sort(values)
	return values
}

// span writes seconds as a duration that a reader need not read twice.
func span(seconds float64) string {
	d := time.Duration(math.Round(seconds * float64(time.Second)))
	switch {
	case d == 0:
		return "0"
	case d < 100*time.Microsecond:
		return "< 0.1 ms"
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", seconds*1e3)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", seconds*1e3)
	default:
		return fmt.Sprintf("%.1f s", seconds)
	}
}

// percent never rounds something to nothing, nor less than all to all.
func percent(n, all int) string {
	share := 100 * float64(n) / float64(all)
	switch {
	case n == all:
		return "100 %"
	case share < 1:
		return "< 1 %"
	case share > 99:
		return "> 99 %"
	default:
		return fmt.Sprintf("%.0f %%", share)
	}
}
