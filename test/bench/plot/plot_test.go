package plot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/honestlimit/ratelimit/test/bench/plot"
)

// elements counts the elements of a drawing by name; it fails if the drawing is not well-formed.
func elements(t *testing.T, svg []byte) map[string]int {
	t.Helper()
	n := map[string]int{}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			t.Fatalf("the drawing is not XML: %v\n%s", err, svg)
		}
		if start, ok := token.(xml.StartElement); ok {
			n[start.Name.Local]++
		}
	}
}

func chart(scale plot.Scale) plot.Chart {
	return plot.Chart{
		Title: `"cost" & <growth>`,
		X:     plot.Axis{Label: "keys", Scale: plot.Log},
		Y:     plot.Axis{Label: "µs", Scale: scale},
		Series: []plot.Series{
			{Name: "Redis", Points: []plot.Point{{X: 1e3, Y: 20, Low: 18, High: 25}, {X: 1e7, Y: 30, Low: 30, High: 30}}},
			{Name: "a < b", Points: []plot.Point{{X: 1e3, Y: 10}, {X: 1e5, Y: 0}, {X: 1e6, Y: 11}}},
		},
	}
}

func TestChart_IsWellFormed(t *testing.T) {
	for _, scale := range []plot.Scale{plot.Linear, plot.Log} {
		t.Run(scale.String(), func(t *testing.T) {
			svg := chart(scale).SVG()
			n := elements(t, svg)
			if n["svg"] != 1 || n["circle"] != 3 { // two points and the legend
				t.Errorf("elements %v, want one svg with 3 circles", n)
			}
			for _, want := range []string{"a &lt; b", "&#34;cost&#34; &amp; &lt;growth&gt;", "prefers-color-scheme", ">10k<"} {
				if !strings.Contains(string(svg), want) {
					t.Errorf("the drawing does not hold %q", want)
				}
			}
			if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
				t.Errorf("a coordinate is no number:\n%s", svg)
			}
		})
	}
}

func TestChart_LeavesOutWhatALogAxisCannotShow(t *testing.T) {
	squares := func(s plot.Scale) int { return strings.Count(string(chart(s).SVG()), "h7v7h-7z") }
	if lin, log := squares(plot.Linear), squares(plot.Log); lin != 4 || log != 3 {
		t.Errorf("markers of the second series: %d linear, %d log, want 4 and 3 with the legend's", lin, log)
	}
}

func TestChart_SurvivesNoData(t *testing.T) {
	for _, c := range []plot.Chart{
		{X: plot.Axis{Scale: plot.Log}, Y: plot.Axis{Scale: plot.Linear}},
		{X: plot.Axis{Scale: plot.Linear}, Y: plot.Axis{Scale: plot.Log}, Series: []plot.Series{{Points: []plot.Point{{}}}}},
	} {
		svg := c.SVG()
		elements(t, svg)
		if strings.Contains(string(svg), "NaN") {
			t.Errorf("a coordinate is no number:\n%s", svg)
		}
	}
}

func TestChart_MarksTheTicksAskedFor(t *testing.T) {
	c := chart(plot.Linear)
	c.X.Ticks = []float64{500, 20_000_000}
	c.X.Format = func(v float64) string { return map[float64]string{500: "few", 20_000_000: "many"}[v] }
	svg := string(c.SVG())
	if !strings.Contains(svg, ">few<") || !strings.Contains(svg, ">many<") || strings.Contains(svg, "><") {
		t.Errorf("the axis is not marked with few and many, and nothing else:\n%s", svg)
	}
}

func TestChart_StaysSmall(t *testing.T) {
	c := chart(plot.Linear)
	for range 4 {
		s := plot.Series{Name: "long"}
		for i := range 300 {
			s.Points = append(s.Points, plot.Point{X: float64(1 + i), Y: float64(i % 97)})
		}
		c.Series = append(c.Series, s)
	}
	if n := len(c.SVG()); n > 20_000 {
		t.Errorf("four series of 300 points take %d bytes, want at most 20,000", n)
	}
}

func TestBars_DrawEachFromZero(t *testing.T) {
	b := plot.Bars{Title: "requests a second", Bars: []plot.Bar{
		{Name: "half", Value: 50, Low: 40, High: 60}, {Name: "all", Value: 100, Group: 1},
	}}
	svg := b.SVG()
	if n := elements(t, svg); n["rect"] != 3 { // the background is one
		t.Errorf("elements %v, want 3 rects", n)
	}
	var half, all float64
	for line := range strings.Lines(string(svg)) {
		var class string
		var x, y, w float64
		if n, _ := fmt.Sscanf(line, `<rect class=%q x="%f" y="%f" width="%f"`, &class, &x, &y, &w); n == 4 {
			half, all = all, w
		}
	}
	if all < 300 || half*2 != all {
		t.Errorf("bars of 50 and 100 are %v and %v wide, want the second to span the drawing", half, all)
	}
}

func TestShort_NamesThousands(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.25: "0.25", 999: "999", 1500: "1.5k", 1e7: "10M", 2e9: "2G"} {
		if got := plot.Short(v); got != want {
			t.Errorf("Short(%v) = %q, want %q", v, got, want)
		}
	}
}
