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
	base := make([]float64, len(t.report.Slots))
	for _, reason := range reasons(t.report) {
		top := slices.Clone(base)
		for i, s := range t.report.Slots {
			top[i] += float64(s.Reasons[reason]) / journal.SlotLength.Seconds()
		}
		t.addf(`<path class="%s" d="%s"/>`, class(reason), t.layer(base, top, scale))
		base = top
	}
}

// layer is the outline of one reason: along the tops of its slots and back along those below, so that no seam shows
// between slots.
func (t *timeline) layer(base, top []float64, scale float64) string {
	var d strings.Builder
	edge := func(i int) string { return num(t.x(t.report.Slots[i].At)) }
	end := num(t.x(t.report.Slots[len(top)-1].At) + t.slotWidth())
	fmt.Fprintf(&d, "M%s %s", edge(0), num(decideBase-base[0]*scale))
	for i, v := range top {
		if i > 0 && v == top[i-1] {
			continue
		}
		fmt.Fprintf(&d, "H%sV%s", edge(i), num(decideBase-v*scale))
	}
	fmt.Fprintf(&d, "H%s", end)
	for i := len(base) - 1; i >= 0; i-- {
		if i < len(base)-1 && base[i] == base[i+1] {
			continue
		}
		if i < len(base)-1 {
			fmt.Fprintf(&d, "H%s", edge(i+1))
		}
		fmt.Fprintf(&d, "V%s", num(decideBase-base[i]*scale))
	}
	d.WriteString("z")
	return d.String()
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
	if told(t.report.Masters) {
		seen := []string{}
		list = append(list, strip{"master", t.report.Masters, func(address string) string {
			i := slices.Index(seen, address)
			if i < 0 {
				seen, i = append(seen, address), len(seen)
			}
			return fmt.Sprintf("node%d", i%4)
		}})
	}
	if told(t.report.Breakers) {
		list = append(list, strip{"breaker", t.report.Breakers, func(state string) string { return "state-" + state }})
	}
	if told(t.report.Quorums) {
		list = append(list, strip{"quorum", t.report.Quorums, func(state string) string { return "quorum-" + state }})
	}
	return list
}

// told is whether any span has a value.
func told(spans []journal.Span) bool {
	return slices.ContainsFunc(spans, func(s journal.Span) bool { return s.Value != "" })
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
