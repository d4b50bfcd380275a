package plot

import (
	"math"
	"strconv"
)

// Scale says how values are laid out along an axis.
type Scale uint8

// The scales.
const (
	// Linear gives equal room to equal differences, and begins at 0.
	Linear Scale = 1 + iota
	// Log gives equal room to equal ratios. It shows only values above 0.
	Log
)

// String names the scale.
func (s Scale) String() string {
	switch s {
	case Linear:
		return "linear"
	case Log:
		return "log"
	default:
		return "scale(" + strconv.Itoa(int(s)) + ")"
	}
}

// Axis describes one direction of a Chart.
type Axis struct {
	// Label says what is measured, and its unit.
	Label string
	// Scale is required.
	Scale Scale
	// Format writes the value of a tick. Default: as a short number.
	Format func(float64) string
	// Ticks are the values to mark, rising; the axis ends with the first and the last. Default: round ones that cover
	// the data.
	Ticks []float64
}

// extent is what the axis shows of the values.
func (a Axis) extent(values []float64) extent {
	if n := len(a.Ticks); n > 1 {
		return extent{scale: a.Scale, low: a.Ticks[0], high: a.Ticks[n-1], ticks: a.Ticks}
	}
	return newExtent(a.Scale, values)
}

func (a Axis) format(v float64) string {
	if a.Format != nil {
		return a.Format(v)
	}
	return Short(v)
}

// Short writes 1500000 as 1.5M and 0.25 as 0.25.
func Short(v float64) string {
	for _, unit := range [...]struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= unit.size {
			return strconv.FormatFloat(v/unit.size, 'g', 4, 64) + unit.name
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// extent is the part of an axis that a drawing shows, and where its ticks are.
type extent struct {
	scale     Scale
	low, high float64
	ticks     []float64
}

// newExtent covers the values, up to a tick at each end.
func newExtent(scale Scale, values []float64) extent {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if scale == Log && v <= 0 {
			continue
		}
		low, high = min(low, v), max(high, v)
	}
	if math.IsInf(low, 1) {
		low, high = 1, 1
	}
	if scale == Log {
		return logExtent(low, high)
	}
	return linearExtent(high)
}

// linearExtent has about five steps of 1, 2 or 5 times a power of ten.
func linearExtent(high float64) extent {
	if high <= 0 {
		high = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(high/4)))
	for _, factor := range [...]float64{1, 2, 5, 10} {
		if high/(step*factor) <= 5 {
			step *= factor
			break
		}
	}
	e := extent{scale: Linear}
	for i := 0.0; ; i++ {
		e.ticks = append(e.ticks, i*step)
		if i*step >= high {
			e.high = i * step
			return e
		}
	}
}

// logExtent has a tick at each power of ten, and at 2 and 5 times it if that makes few.
func logExtent(low, high float64) extent {
	from, to := int(math.Floor(math.Log10(low)+1e-9)), int(math.Ceil(math.Log10(high)-1e-9))
	factors := []float64{1}
	if to-from < 2 {
		factors = []float64{1, 2, 5}
	}
	e := extent{scale: Log}
	for decade := from; decade <= max(to, from+1); decade++ {
		for _, f := range factors {
			e.ticks = append(e.ticks, f*math.Pow(10, float64(decade)))
		}
	}
	for len(e.ticks) > 2 && e.ticks[1] <= low*(1+1e-9) {
		e.ticks = e.ticks[1:]
	}
	for n := len(e.ticks); n > 2 && e.ticks[n-2] >= high*(1-1e-9); n-- {
		e.ticks = e.ticks[:n-1]
	}
	e.low, e.high = e.ticks[0], e.ticks[len(e.ticks)-1]
	return e
}

// at is where v lies, from 0 to 1.
func (e extent) at(v float64) float64 {
	if e.scale == Log {
		return math.Log(max(v, e.low)/e.low) / math.Log(e.high/e.low)
	}
	return (v - e.low) / (e.high - e.low)
}
