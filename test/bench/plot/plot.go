// Package plot draws charts as SVG: lines over two axes, and bars. The drawings need no script and no font of their
// own, bring their background with them, and follow the reader's choice of light or dark. Series differ by colour and
// by marker, so that no reading depends on colour alone.
//
// It knows nothing of what the numbers mean. All functions are pure.
package plot

import (
	"bytes"
	"fmt"
	"html"
	"strconv"
)

// width of every drawing, in pixels of the SVG.
const width = 720

// style is shared by all drawings. The hues keep their distance for the common colour blindnesses, in both themes.
const style = `<style>
.bg{fill:#fff}
text{font:13px system-ui,sans-serif;fill:#24292f}.t{font-weight:600;font-size:15px}.m{fill:#57606a}
.g{stroke:#d8dee4;fill:none}.a{stroke:#8c959f;fill:none}
.l{fill:none;stroke-width:2}.w{stroke:#24292f;stroke-width:1.5;fill:none}
.s0{stroke:#0969da}.f0{fill:#0969da}.s1{stroke:#bc4c00}.f1{fill:#bc4c00}.s2{stroke:#1a7f37}.f2{fill:#1a7f37}
.s3{stroke:#8250df}.f3{fill:#8250df}.s4{stroke:#57606a}.f4{fill:#57606a}
@media(prefers-color-scheme:dark){
.bg{fill:#0d1117}text{fill:#e6edf3}.m{fill:#9198a1}.g{stroke:#2b323b}.a{stroke:#656c76}
.w{stroke:#e6edf3}
.s0{stroke:#4493f8}.f0{fill:#4493f8}.s1{stroke:#f0883e}.f1{fill:#f0883e}.s2{stroke:#3fb950}.f2{fill:#3fb950}
.s3{stroke:#ab7df8}.f3{fill:#ab7df8}.s4{stroke:#9198a1}.f4{fill:#9198a1}}
</style>`

// hues is the number of colours in style; further series begin again.
const hues = 5

// canvas collects the elements of a drawing.
type canvas struct{ bytes.Buffer }

func newCanvas(title string, height int) *canvas {
	c := &canvas{}
	c.addf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`,
		width, height, width, height)
	c.addf(`<title>%s</title>`, html.EscapeString(title))
	c.addf(`%s`, style)
	c.addf(`<rect class="bg" width="%d" height="%d" rx="6"/>`, width, height)
	c.text(16, 26, `class="t"`, title)
	return c
}

func (c *canvas) addf(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

func (c *canvas) text(x, y float64, attributes, s string) {
	c.addf(`<text x="%s" y="%s" %s>%s</text>`, num(x), num(y), attributes, html.EscapeString(s))
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	c.addf(`<path class="%s" d="M%s %sL%s %s"/>`, class, num(x1), num(y1), num(x2), num(y2))
}

// marker draws the sign of a series: circle, square, triangle, diamond, and again.
func (c *canvas) marker(series int, x, y float64) {
	class := "f" + strconv.Itoa(series%hues)
	switch series % 4 {
	case 0:
		c.addf(`<circle class="%s" cx="%s" cy="%s" r="4"/>`, class, num(x), num(y))
	case 1:
		c.addf(`<path class="%s" d="M%s %sh7v7h-7z"/>`, class, num(x-3.5), num(y-3.5))
	case 2:
		c.addf(`<path class="%s" d="M%s %sl4.5 8h-9z"/>`, class, num(x), num(y-5))
	default:
		c.addf(`<path class="%s" d="M%s %sl5 5l-5 5l-5-5z"/>`, class, num(x), num(y-5))
	}
}

// finish returns the drawing.
func (c *canvas) finish() []byte {
	c.WriteString("</svg>\n")
	return c.Bytes()
}

// num writes a coordinate with one digit after the point.
func num(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
