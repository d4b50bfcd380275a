package plot

import (
	"bytes"
	"fmt"
)

// Frame of a Chart, in pixels.
const (
	chartHeight = 380
	chartLeft   = 64
	chartRight  = width - 32
	chartTop    = 72
	chartBottom = chartHeight - 48
)

// markersUpTo is how many points a series may have and still get markers: more would run together.
const markersUpTo = 40

// Point is one measurement. Low and High are the ends of its whisker; none is drawn where they are equal.
type Point struct{ X, Y, Low, High float64 }

// Series is one line.
type Series struct {
	Name   string
	Points []Point
}

// Chart draws lines over two axes.
type Chart struct {
	Title  string
	X, Y   Axis
	Series []Series
}

// SVG is the drawing. Points that an axis cannot show, such as 0 on a Log one, are left out.
func (c Chart) SVG() []byte {
	out := newCanvas(c.Title, chartHeight)
	var xs, ys []float64
	for _, s := range c.Series {
		for _, p := range s.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y, p.High)
			if p.Low > 0 {
				ys = append(ys, p.Low)
			}
		}
	}
	f := frame{x: c.X.extent(xs), y: c.Y.extent(ys)}
	c.axes(out, f)
	x := float64(chartLeft)
	for i, s := range c.Series {
		f.series(out, i, s)
		out.marker(i, x, 46)
		out.text(x+10, 50, ``, s.Name)
		x += 34 + 7.2*float64(len(s.Name))
	}
	return out.finish()
}

func (c Chart) axes(out *canvas, f frame) {
	for _, v := range f.y.ticks {
		y := f.py(v)
		out.line("g", chartLeft, y, chartRight, y)
		out.text(chartLeft-8, y+4, `class="m" text-anchor="end"`, c.Y.format(v))
	}
	for _, v := range f.x.ticks {
		x := f.px(v)
		out.line("a", x, chartBottom, x, chartBottom+4)
		out.text(x, chartBottom+18, `class="m" text-anchor="middle"`, c.X.format(v))
	}
	out.line("a", chartLeft, chartBottom, chartRight, chartBottom)
	out.text((chartLeft+chartRight)/2, chartHeight-10, `text-anchor="middle"`, c.X.Label)
	mid := float64(chartTop+chartBottom) / 2
	out.text(0, 0, fmt.Sprintf(`text-anchor="middle" transform="translate(16 %s) rotate(-90)"`, num(mid)), c.Y.Label)
}

// frame maps values to pixels.
type frame struct{ x, y extent }

func (f frame) px(v float64) float64 { return chartLeft + f.x.at(v)*(chartRight-chartLeft) }
func (f frame) py(v float64) float64 { return chartBottom - f.y.at(v)*(chartBottom-chartTop) }

func (f frame) shows(p Point) bool {
	return (f.x.scale != Log || p.X > 0) && (f.y.scale != Log || p.Y > 0)
}

func (f frame) series(out *canvas, i int, s Series) {
	var path bytes.Buffer
	for _, p := range s.Points {
		if !f.shows(p) {
			continue
		}
		move := "L"
		if path.Len() == 0 {
			move = "M"
		}
		path.WriteString(move + num(f.px(p.X)) + " " + num(f.py(p.Y)))
	}
	if path.Len() == 0 {
		return
	}
	out.addf(`<path class="l s%d" d="%s"/>`, i%hues, path.String())
	if len(s.Points) > markersUpTo {
		return
	}
	for _, p := range s.Points {
		if !f.shows(p) {
			continue
		}
		if p.Low < p.High {
			out.line(fmt.Sprintf("l s%d", i%hues), f.px(p.X), f.py(p.Low), f.px(p.X), f.py(p.High))
		}
		out.marker(i, f.px(p.X), f.py(p.Y))
	}
}
