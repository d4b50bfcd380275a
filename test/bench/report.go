package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// report prints the medians of all rounds as a Markdown table. The ratio is against the constant answer of the same
// round.
func report(w io.Writer, results [][]sample) {
	fmt.Fprintln(w, "| | requests/s | against the constant | p50 | p99 | p99.9 | worst | OK / 429 / 503 / other |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|")
	for i, rounds := range results {
		ratios := make([]float64, len(rounds))
		for r := range rounds {
			ratios[r] = rounds[r].perSecond / results[0][r].perSecond
		}
		fmt.Fprintf(w, "| %s | %.0f | %.2f | %s | %s | %s | %s | %s |\n", scenarios[i].name,
			medianOf(rounds, func(s sample) float64 { return s.perSecond }), median(ratios),
			millis(medianOf(rounds, func(s sample) time.Duration { return s.p50 })),
			millis(medianOf(rounds, func(s sample) time.Duration { return s.p99 })),
			millis(medianOf(rounds, func(s sample) time.Duration { return s.p999 })),
			millis(medianOf(rounds, func(s sample) time.Duration { return s.max })),
			answers(rounds),
		)
	}
}

// answers sums up over the rounds, in percent of all requests; "-" is not one.
func answers(rounds []sample) string {
	var total sample
	for _, s := range rounds {
		total.ok += s.ok
		total.overLimit += s.overLimit
		total.refused += s.refused
		total.failed += s.failed
	}
	all := total.ok + total.overLimit + total.refused + total.failed
	share := func(n int) string {
		if n == 0 {
			return "-"
		}
		return fmt.Sprintf("%.3g %%", 100*float64(n)/float64(all))
	}
	return fmt.Sprintf("%s / %s / %s / %s",
		share(total.ok), share(total.overLimit), share(total.refused), share(total.failed))
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

func medianOf[T cmp.Ordered](rounds []sample, field func(sample) T) T {
	values := make([]T, len(rounds))
	for i, s := range rounds {
		values[i] = field(s)
	}
	return median(values)
}

func median[T cmp.Ordered](values []T) T {
	values = slices.Clone(values)
	slices.Sort(values)
	return values[len(values)/2]
}
