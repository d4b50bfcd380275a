package plot

// Frame of Bars, in pixels.
const (
	barsLeft  = 270
	barsRight = width - 84
	barsTop   = 44
	barHeight = 20
	barPitch  = 30
)

// Bar is one measurement. Low and High are the ends of its whisker; none is drawn where they are equal.
type Bar struct {
	Name             string
	Value, Low, High float64
	// Group picks the colour, so that bars of one kind look alike.
	Group int
}

// Bars draws one horizontal bar a measurement, from 0, with its value beside it.
type Bars struct {
	Title string
	Bars  []Bar
	// Format writes a value. Default: Short.
	Format func(float64) string
}

// SVG is the drawing.
func (b Bars) SVG() []byte {
	format := Axis{Format: b.Format}.format
	out := newCanvas(b.Title, barsTop+barPitch*len(b.Bars)+12)
	var values []float64
	for _, bar := range b.Bars {
		values = append(values, bar.Value, bar.High)
	}
	e := newExtent(Linear, values)
	px := func(v float64) float64 { return barsLeft + e.at(v)*(barsRight-barsLeft) }
	for i, bar := range b.Bars {
		y := float64(barsTop + i*barPitch)
		mid := y + barHeight/2
		out.text(barsLeft-10, mid+4, `text-anchor="end"`, bar.Name)
		out.addf(`<rect class="f%d" x="%d" y="%s" width="%s" height="%d" rx="2"/>`,
			bar.Group%hues, barsLeft, num(y), num(px(bar.Value)-barsLeft), barHeight)
		end := px(bar.Value)
		if bar.Low < bar.High {
			out.line("w", px(bar.Low), mid, px(bar.High), mid)
			end = max(end, px(bar.High))
		}
		out.text(end+8, mid+4, ``, format(bar.Value))
	}
	return out.finish()
}
