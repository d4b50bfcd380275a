package page

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

// marks are lines through everything; labels that would meet are moved apart and joined to their lines.
func (t *timeline) marks() {
	type label struct {
		mark journal.Mark
		x    float64
	}
	var labels []label
	for _, m := range t.report.Marks.List() {
		if m.Happened {
			labels = append(labels, label{m, t.x(m.At.Seconds())})
		}
	}
	slices.SortStableFunc(labels, func(a, b label) int { return int(a.x - b.x) })
	at := make([]float64, len(labels))
	for i, l := range labels {
		at[i] = l.x
		if i > 0 {
			at[i] = math.Max(l.x, at[i-1]+labelGap)
		}
	}
	for i := len(at) - 1; i >= 0; i-- { // and back, where the right edge left too little room
		limit := float64(right) - labelGap/2
		if i < len(at)-1 {
			limit = at[i+1] - labelGap
		}
		at[i] = math.Min(at[i], limit)
	}
	for i, l := range labels {
		t.addf(`<path class="mark" d="M%s %dL%s %dV%s"><title>%s %s: %s</title></path>`, num(at[i]), labelsTop+16,
			num(l.x), decideTop-6, num(t.height-axisHeight), l.mark.Short, html.EscapeString(l.mark.Long),
			fromFault(t.report, l.mark.At.Seconds()))
		t.addf(`<rect class="flag" x="%s" y="%d" width="28" height="17" rx="3"/>`, num(at[i]-14), labelsTop)
		t.text(at[i], labelsTop+13, "flagtext", "middle", l.mark.Short)
	}
}

// hover tells what each slot holds.
func (t *timeline) hover() {
	for _, s := range t.report.Slots {
		if len(s.Reasons) == 0 {
			continue
		}
		var words []string
		for _, reason := range reasons(t.report) {
			if n := s.Reasons[reason]; n > 0 {
				words = append(words, fmt.Sprintf("%s %d", reason, n))
			}
		}
		t.addf(`<rect class="hover" x="%s" y="%d" width="%s" height="%d"><title>%s`+"\n%s\np99 %s, worst %s</title></rect>",
			num(t.x(s.At)), decideTop, num(t.slotWidth()), latencyBase-decideTop, fromFault(t.report, s.At),
			html.EscapeString(strings.Join(words, "\n")), span(s.P99), span(s.Worst))
	}
}
