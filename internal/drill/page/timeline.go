package page

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// Frame of the timeline, in pixels of the drawing: labels of the marks, decisions, latency, and strips that say who was
// master and what the breaker did.
const (
	width       = 1080
	left        = 68
	right       = width - 16
	labelsTop   = 14
	decideTop   = 64
	decideBase  = 264
	latencyTop  = 296
	latencyBase = 396
	stripTop    = 416
	stripHeight = 16
	stripPitch  = 24
	axisHeight  = 40
	labelGap    = 34
)

// canvas collects the elements of a drawing.
type canvas struct{ bytes.Buffer }

func (c *canvas) addf(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

func (c *canvas) text(x, y float64, class, anchor, s string) {
	c.addf(`<text x="%s" y="%s" class="%s" text-anchor="%s">%s</text>`, num(x), num(y), class, anchor,
		html.EscapeString(s))
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	c.addf(`<path class="%s" d="M%s %sL%s %s"/>`, class, num(x1), num(y1), num(x2), num(y2))
}

// num writes a coordinate with one digit after the point.
func num(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// timeline draws a run: decisions by reason in slots of a tenth of a second, their latency, and the marks.
type timeline struct {
	canvas
	report *journal.Report
	height float64
}

// drawTimeline returns the SVG.
func drawTimeline(r *journal.Report) string {
	t := &timeline{report: r}
	strips := t.strips()
	t.height = stripTop + float64(len(strips))*stripPitch + axisHeight
	t.addf(`<svg viewBox="0 0 %d %s" role="img" aria-label="decisions, latency and marks over time">`, width,
		num(t.height))
	t.decisions()
	t.latency()
	for i, s := range strips {
		t.strip(float64(stripTop+i*stripPitch), s)
	}
	t.axis()
	t.marks()
	t.hover()
	t.WriteString("</svg>\n")
	return t.String()
}

// x is where a moment lies.
func (t *timeline) x(seconds float64) float64 {
	return left + seconds/math.Max(t.report.Seconds, 0.1)*(right-left)
}

func (t *timeline) slotWidth() float64 {
	return math.Max(0.4, t.x(journal.SlotLength.Seconds())-t.x(0))
}

// decisions stacks the reasons: what the store decided at the bottom, what the table decided on top.
func (t *timeline) decisions() {
	most := 1
	for _, s := range t.report.Slots {
		most = max(most, sum(s.Reasons))
	}
	perSecond := float64(most) / journal.SlotLength.Seconds()
	step := niceStep(perSecond, 6)
	high := math.Ceil(perSecond/step) * step
	scale := (decideBase - decideTop) / high
	for v := 0.0; v <= high+1e-9; v += step {
		y := decideBase - v*scale
		t.line("grid", left, y, right, y)
		t.text(left-8, y+4, "tick", "end", strconv.FormatFloat(v, 'f', -1, 64))
	}
	t.title(decideTop, decideBase, "decisions a second")
	stacked := make([]float64, len(t.report.Slots))
	for _, reason := range reasons(t.report) {
		var d strings.Builder
		for i, s := range t.report.Slots {
			n := float64(s.Reasons[reason]) / journal.SlotLength.Seconds()
			if n == 0 {
				continue
			}
			top := decideBase - (stacked[i]+n)*scale
			stacked[i] += n
			fmt.Fprintf(&d, "M%s %sh%sv%sh-%sz", num(t.x(s.At)), num(top), num(t.slotWidth()), num(n*scale),
				num(t.slotWidth()))
		}
		t.addf(`<path class="%s" d="%s"/>`, class(reason), d.String())
	}
}

// latency draws p99 and worst of each slot on a logarithmic scale.
func (t *timeline) latency() {
	low, high := 0.0001, 0.1
	for _, s := range t.report.Slots {
		for s.Worst > high {
			high *= 10
		}
	}
	y := func(seconds float64) float64 {
		at := math.Log(math.Max(seconds, low)/low) / math.Log(high/low)
		return latencyBase - at*(latencyBase-latencyTop)
	}
	for v := low; v <= high*1.01; v *= 10 {
		t.line("grid", left, y(v), right, y(v))
		t.text(left-8, y(v)+4, "tick", "end", span(v))
	}
	t.title(latencyTop, latencyBase, "latency")
	if b := t.report.Budget; b > low && b < high {
		t.line("budget", left, y(b), right, y(b))
		t.text(right-4, y(b)-4, "tick", "end", "budget "+span(b))
	}
	t.path("worst", y, func(s journal.Slot) float64 { return s.Worst })
	t.path("p99", y, func(s journal.Slot) float64 { return s.P99 })
}

// path joins the slots that have answers, and breaks where there are none.
func (t *timeline) path(class string, y func(float64) float64, value func(journal.Slot) float64) {
	var d strings.Builder
	joined := false
	for _, s := range t.report.Slots {
		if len(s.Reasons) == 0 {
			joined = false
			continue
		}
		command := "M"
		if joined {
			command = "L"
		}
		joined = true
		fmt.Fprintf(&d, "%s%s %s", command, num(t.x(s.At+journal.SlotLength.Seconds()/2)), num(y(value(s))))
	}
	t.addf(`<path class="%s" d="%s"/>`, class, d.String())
}

// strip is a row of spans, each with a colour of its meaning.
type strip struct {
	name  string
	spans []journal.Span
	class func(value string) string
}

func (t *timeline) strips() []strip {
	list := []strip{}
	if len(t.report.Masters) > 0 {
		seen := []string{}
		list = append(list, strip{"master", t.report.Masters, func(address string) string {
			i := slices.Index(seen, address)
			if i < 0 {
				seen, i = append(seen, address), len(seen)
			}
			return fmt.Sprintf("node%d", i%4)
		}})
	}
	if len(t.report.Breakers) > 0 {
		list = append(list, strip{"breaker", t.report.Breakers, func(state string) string { return "state-" + state }})
	}
	if len(t.report.Quorums) > 0 {
		list = append(list, strip{"quorum", t.report.Quorums, func(state string) string { return "quorum-" + state }})
	}
	return list
}

func (t *timeline) strip(y float64, s strip) {
	t.text(left-8, y+12, "tick", "end", s.name)
	for _, p := range s.spans {
		if p.Value == "" {
			continue
		}
		x, w := t.x(p.From), t.x(p.To)-t.x(p.From)
		t.addf(`<rect class="%s" x="%s" y="%s" width="%s" height="%d" rx="2"><title>%s</title></rect>`, s.class(p.Value),
			num(x), num(y), num(math.Max(w, 0.8)), stripHeight,
			html.EscapeString(fmt.Sprintf("%s from %s to %s", p.Value, fromFault(t.report, p.From), fromFault(t.report, p.To))))
		if w > 7*float64(len(p.Value)) {
			t.text(x+6, y+12, "onstrip", "start", p.Value)
		}
	}
}

// axis counts seconds from the fault.
func (t *timeline) axis() {
	zero := t.report.Marks.Fault.At.Seconds()
	y := t.height - axisHeight + 4
	step := niceStep(t.report.Seconds, 12)
	for n := math.Ceil(-zero / step); n*step+zero <= t.report.Seconds; n++ {
		x := t.x(n*step + zero)
		t.line("axis", x, y, x, y+5)
		t.text(x, y+18, "tick", "middle", strconv.FormatFloat(float64(int(n))*step, 'f', -1, 64))
	}
	t.line("axis", left, y, right, y)
	t.text((left+right)/2, y+32, "label", "middle", "seconds from the fault")
}

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

func (t *timeline) title(top, base float64, s string) {
	t.addf(`<text class="label" text-anchor="middle" transform="translate(14 %s) rotate(-90)">%s</text>`,
		num((top+base)/2), html.EscapeString(s))
}

// niceStep divides a range into at most so many steps, each of 1, 2 or 5 times a power of ten.
func niceStep(high, most float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(math.Max(high, 1e-3))))
	for _, f := range [...]float64{0.1, 0.2, 0.5, 1, 2} {
		if high/(step*f) <= most {
			return step * f
		}
	}
	return step
}

// class is the style of a reason; whatever is outside the table shares one that nobody misses.
func class(reason string) string {
	for i, r := range failure.Reasons {
		if r.String() == reason {
			return fmt.Sprintf("r%d", i)
		}
	}
	if reason == journal.DeniedWithoutReason {
		return "r2"
	}
	return "outside"
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}
