package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is how long requests took, from when they were due to when they ended, whatever the answer was. It is
// exact to three digits, and to 1 us.
type Latency struct {
	Mean float64 `json:"mean_seconds"`
	P50  float64 `json:"p50_seconds"`
	P90  float64 `json:"p90_seconds"`
	P99  float64 `json:"p99_seconds"`
	P999 float64 `json:"p999_seconds"`
	// P9999 is the 99.99th percentile.
	P9999 float64 `json:"p9999_seconds"`
	Max   float64 `json:"max_seconds"`
	// Distribution counts the requests up to bounds of 1, 2 and 5 of each power of ten, from the bound below the
	// fastest to the one above the slowest request.
	Distribution []Bucket `json:"distribution"`
}

// Bucket is one step of a cumulative distribution.
type Bucket struct {
	UpTo     float64 `json:"up_to_seconds"`
	Requests int64   `json:"requests"`
}

func newLatency(h *hdrhistogram.Histogram, worst time.Duration) Latency {
	at := func(percentile float64) float64 {
		return min(seconds(time.Duration(h.ValueAtPercentile(percentile))), seconds(worst))
	}
	return Latency{
		Mean: h.Mean() / float64(time.Second),
		P50:  at(50), P90: at(90), P99: at(99), P999: at(99.9), P9999: at(99.99),
		Max:          seconds(worst),
		Distribution: distribution(h),
	}
}

// distribution counts at bounds that a reader knows by heart. A value that the histogram cannot tell from the bound
// counts as up to it.
func distribution(h *hdrhistogram.Histogram) []Bucket {
	list := []Bucket{}
	bars := h.Distribution()
	var sum int64
	for bound := shortest; sum < h.TotalCount(); bound = nextBound(bound) {
		for len(bars) > 0 && bars[0].From <= bound {
			sum += bars[0].Count
			bars = bars[1:]
		}
		if sum == 0 {
			list = list[:0]
		}
		list = append(list, Bucket{UpTo: seconds(time.Duration(bound)), Requests: sum})
	}
	return list
}

// nextBound goes on from 1 to 2 to 5 to 10.
func nextBound(bound int64) int64 {
	for leading := bound; ; leading /= 10 {
		switch leading {
		case 2:
			return bound / 2 * 5
		case 1, 5:
			return bound * 2
		}
	}
}

func seconds(d time.Duration) float64 { return d.Seconds() }
