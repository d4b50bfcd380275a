package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// spread is a figure over the rounds of a run.
type spread struct{ Median, Min, Max float64 }

// spreadOf is the zero spread if there are no values.
func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	return spread{Median: median(values), Min: slices.Min(values), Max: slices.Max(values)}
}

// over collects one figure of every round.
func over[T any](rounds []T, figure func(T) float64) spread {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = figure(r)
	}
	return spreadOf(values)
}

// median of an even number of values is the mean of the two in the middle.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// ratios divides round by round: drift of the machine, which is the same for both, cancels out. A round that one of
// them lacks is left out.
func ratios(a, b []float64) []float64 {
	var out []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			out = append(out, a[i]/b[i])
		}
	}
	return out
}

// show writes "median [min-max]" in the given format.
func (s spread) show(format func(float64) string) string {
	if s == (spread{}) {
		return "-"
	}
	return fmt.Sprintf("%s [%s-%s]", format(s.Median), format(s.Min), format(s.Max))
}

// digits writes v with n significant digits and without an exponent.
func digits(v float64, n int) string {
	s := strconv.FormatFloat(v, 'g', n, 64)
	if strings.ContainsAny(s, "e") {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return s
}

func thousands(v float64) string { return digits(v/1e3, 3) + " k" }
func micros(v float64) string    { return digits(v, 3) }
func times(v float64) string     { return strconv.FormatFloat(v, 'f', 2, 64) }
func whole(v float64) string     { return strconv.FormatFloat(v, 'f', 0, 64) }

// millis writes seconds as milliseconds.
func millis(seconds float64) string { return digits(seconds*1e3, 3) }

// span writes seconds as a duration with three digits.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Millisecond:
		return digits(seconds*1e6, 3) + " µs"
	case d < time.Second:
		return digits(seconds*1e3, 3) + " ms"
	default:
		return digits(seconds, 3) + " s"
	}
}

// sortedKeys are the keys of m in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
