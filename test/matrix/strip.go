package main

import (
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill"
	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

// A strip is the part of a run that the timeline shows, cut into slots.
const (
	slot       = 50 * time.Millisecond
	stripFrom  = -500 * time.Millisecond // from the fault
	stripUntil = 6 * time.Second
)

// unasked stands for the share of nothing.
const unasked = -1

// strip is what the timeline draws of a run.
type strip struct {
	// Without is the share of each slot's answers that the store did not decide, in percent; unasked where there are none,
	// such as after the end of the run.
	Without []int
	// Healed is what the recovery counts from, in seconds from the fault; 0 if nobody had to heal it.
	Healed float64
}

// strip counts answers of both fail modes by when they were due.
func (m measurement) strip(healed journal.Moment) strip {
	const slots = int((stripUntil - stripFrom) / slot)
	var all, degraded [slots]int
	start := m.marks.Fault.At + stripFrom
	for _, a := range m.j.Answers {
		i := int((a.Due - start) / slot)
		if mode := m.mode(a); a.Due < start || i >= slots || mode != failClosed && mode != failOpen {
			continue
		}
		all[i]++
		if a.Degraded() {
			degraded[i]++
		}
	}
	s := strip{Without: make([]int, slots)}
	for i := range slots {
		s.Without[i] = unasked
		if all[i] > 0 {
			s.Without[i] = 100 * degraded[i] / all[i]
		}
	}
	if m.ending != unnoticed {
		s.Healed = max(0, healed.At-m.marks.Fault.At).Seconds()
	}
	return s
}

// The layout of the timeline, in pixels.
const (
	labelWidth = 320
	panelWidth = 260
	panelGap   = 20
	lineHeight = 18
	barHeight  = 12
	headHeight = 54
	footHeight = 26
)

// timeline draws the first run of each row: a line for each fault, a panel for each topology.
func (r *results) timeline() []byte {
	width := labelWidth + len(topologies)*(panelWidth+panelGap)
	height := headHeight + len(faults())*lineHeight + footHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`,
		width, height)
	b.WriteString("\n<title>Who decided, before, during and after each fault</title>\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	legend(&b)
	for i, f := range faults() {
		text(&b, labelWidth-10, headHeight+i*lineHeight+barHeight-2, "end", strings.ReplaceAll(f.name, "`", ""))
	}
	for i, on := range topologies {
		r.panel(&b, on, labelWidth+i*(panelWidth+panelGap))
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func legend(b *strings.Builder) {
	for i, entry := range []struct{ fill, words string }{
		{storeFill, "decided by the store"},
		{tableFill, "by the fail mode"},
		{healedFill, "the fault is over, or another master is announced"},
	} {
		x := labelWidth + i*170
		fmt.Fprintf(b, `<rect x="%d" y="8" width="%d" height="%d" fill="%s"/>`+"\n", x, barHeight, barHeight, entry.fill)
		text(b, x+barHeight+6, 18, "start", entry.words)
	}
}

const (
	storeFill  = "#b7dfc0"
	tableFill  = "#d9480f"
	healedFill = "#1b1f24"
	gridFill   = "#8b949e"
)

// panel is one topology; a fault that it does not have leaves a gap.
func (r *results) panel(b *strings.Builder, on drill.Topology, x int) {
	text(b, x, headHeight-14, "start", upperFirst(on.String()))
	lines := map[string]int{}
	for i, f := range faults() {
		lines[f.id] = headHeight + i*lineHeight
	}
	for _, s := range r.rows(on) {
		bar(b, s.Runs[0].Strip, x, lines[s.id])
	}
	bottom := headHeight + len(faults())*lineHeight
	for second := time.Duration(0); second <= stripUntil; second += time.Second {
		at := float64(x) + pixels(second)
		fmt.Fprintf(b, `<path d="M%.1f %dV%d" stroke="%s" stroke-width=".5" stroke-dasharray="2 3"/>`+"\n",
			at, headHeight-8, bottom, gridFill)
		text(b, int(at), bottom+14, "middle", fmt.Sprintf("%.0f s", second.Seconds()))
	}
}

// pixels is where a moment after the fault is in a panel.
func pixels(d time.Duration) float64 {
	return panelWidth * float64(d-stripFrom) / float64(stripUntil-stripFrom)
}

// bar draws slots that are alike as one.
func bar(b *strings.Builder, s strip, x, y int) {
	for i := 0; i < len(s.Without); {
		first := i
		for i < len(s.Without) && s.Without[i] == s.Without[first] {
			i++
		}
		share := s.Without[first]
		if share == unasked {
			continue
		}
		from, to := pixels(stripFrom+time.Duration(first)*slot), pixels(stripFrom+time.Duration(i)*slot)
		box := fmt.Sprintf(`<rect x="%.1f" y="%d" width="%.1f" height="%d"`, float64(x)+from, y, to-from, barHeight)
		fmt.Fprintf(b, `%s fill="%s"/>`+"\n", box, storeFill)
		if share > 0 {
			fmt.Fprintf(b, `%s fill="%s" fill-opacity="%.2f"/>`+"\n", box, tableFill, float64(share)/100)
		}
	}
	healed := time.Duration(s.Healed * float64(time.Second))
	if healed > 0 && healed < stripUntil {
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="2" height="%d" fill="%s"/>`+"\n",
			float64(x)+pixels(healed)-1, y-2, barHeight+4, healedFill)
	}
}

func text(b *strings.Builder, x, y int, anchor, words string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s" fill="#1b1f24">%s</text>`+"\n",
		x, y, anchor, html.EscapeString(words))
}
