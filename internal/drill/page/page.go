// Package page shows the reports of drills to people: as text for a terminal, and as one HTML page that needs nothing
// from anywhere else, neither script nor font nor image, in light and dark.
//
// It adds no judgement to the reports. All functions are pure.
package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

// name is the category with its variant.
func name(r *journal.Report) string {
	if r.Variant == "" {
		return r.Category.String()
	}
	return r.Category.String() + " / " + r.Variant
}

// anchor is name, as an address within the page may be.
func anchor(r *journal.Report) string { return strings.ReplaceAll(name(r), " / ", "-") }

// span is a number of seconds with a unit that fits.
func span(seconds float64) string {
	return journal.Short(time.Duration(seconds * float64(time.Second)))
}

// fromFault counts a moment from T0, as a reader does; without a T0 from the start.
func fromFault(r *journal.Report, seconds float64) string {
	return fmt.Sprintf("%+.3f s", seconds-r.Marks.Fault.At.Seconds())
}

// reasons are those that came in any phase, in the order of the table.
func reasons(r *journal.Report) []string {
	var list []string
	for _, p := range r.Phases {
		for reason := range p.Reasons {
			list = append(list, reason)
		}
	}
	for _, s := range r.Slots {
		for reason := range s.Reasons {
			list = append(list, reason)
		}
	}
	slices.SortFunc(list, journal.ReasonOrder)
	return slices.Compact(list)
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// verdict is one word.
func verdict(passed bool) string {
	if passed {
		return "PASS"
	}
	return "FAIL"
}

// worthTelling are the Sentinel events that a reader of a failover looks for.
func worthTelling(e journal.Event) bool {
	switch strings.TrimLeft(e.Name, "+-") {
	case "sdown", "odown", "try-failover", "elected-leader", "selected-slave", "promoted-slave", "switch-master",
		"failover-end", "failover-detected", "convert-to-slave", "new-epoch", "vote-for-leader", "config-update-from",
		"failover-abort-no-good-slave", "failover-abort-not-elected", "reboot", "slave-reconf-done", "fail", "pfail":
		return true
	default:
		return false
	}
}
