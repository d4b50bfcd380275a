package journal

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Moment is when something happened, counted from the start of the run. The zero value never happened.
type Moment struct {
	At       time.Duration
	Happened bool
}

// Seen is a moment that was seen.
func Seen(at time.Duration) Moment { return Moment{At: at, Happened: true} }

// Since is how long after o the moment came; it happened if both did.
func (m Moment) Since(o Moment) Moment {
	if !m.Happened || !o.Happened {
		return Moment{}
	}
	return Seen(m.At - o.At)
}

// Or is m if it happened, else o.
func (m Moment) Or(o Moment) Moment {
	if m.Happened {
		return m
	}
	return o
}

// String is in seconds or milliseconds, or a dash.
func (m Moment) String() string {
	if !m.Happened {
		return "-"
	}
	return Short(m.At)
}

// MarshalJSON is the number of seconds to the microsecond, or null.
func (m Moment) MarshalJSON() ([]byte, error) {
	if !m.Happened {
		return []byte("null"), nil
	}
	return json.Marshal(math.Round(m.At.Seconds()*1e6) / 1e6)
}

// Short writes a duration with three digits and a unit that fits.
func Short(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d.Abs() < time.Millisecond:
		return fmt.Sprintf("%.0f µs", float64(d)/float64(time.Microsecond))
	case d.Abs() < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}
