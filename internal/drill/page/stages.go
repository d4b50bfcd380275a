package page

import (
	"fmt"
	"html"
	"math"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

// Frame of the bar that says where the time of an outage went.
const (
	stagesHeight = 34
	stagesTop    = 4
	stagesBar    = 26
	// letter is about how wide one is.
	letter = 6.4
)

// leg is a part of an outage.
type leg struct {
	// Class is its style, Name what happened in it, Took how long it was.
	Class, Name string
	Took        journal.Moment
}

// legs follow each other from the fault to the first decision by the new master. A moment that was not seen belongs to
// the leg that ends with the next.
func legs(r *journal.Report) []leg {
	m := r.Marks
	var list []leg
	last := m.Fault
	for i, l := range []struct {
		name string
		to   journal.Moment
	}{
		{"the first misses the master", m.SDown},
		{"enough of them agree", m.ODown},
		{"one is elected", m.Leader},
		{"a replica is promoted", m.Promoted},
		{"the switch is announced", m.Switch},
		{"the service follows", m.Decided},
	} {
		took := l.to.Since(last)
		if took.Happened && took.At >= 0 && r.Recovery.Happened {
			list = append(list, leg{fmt.Sprintf("leg%d", i), l.name, took})
			last = l.to
		}
	}
	return list
}

// drawStages returns the SVG.
func drawStages(r *journal.Report) string {
	c := &canvas{}
	c.addf(`<svg viewBox="0 0 %d %d" role="img" aria-label="where the time of the outage went">`, width, stagesHeight)
	x := 0.0
	for _, l := range legs(r) {
		w := l.Took.At.Seconds() / r.Recovery.At.Seconds() * width
		c.addf(`<rect class="%s" x="%s" y="%d" width="%s" height="%d"><title>%s: %s</title></rect>`, l.Class, num(x),
			stagesTop, num(math.Max(w, 2)), stagesBar, html.EscapeString(l.Name), l.Took)
		if text := l.Took.String(); w > letter*float64(len(text))+10 {
			c.text(x+w/2, stagesTop+stagesBar/2+4, "onstrip", "middle", text)
		}
		x += w
	}
	c.WriteString("</svg>\n")
	return c.String()
}
