package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

//go:embed page.gohtml
var source string

// HTML writes one page that shows all reports.
func HTML(w io.Writer, reports []*journal.Report) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"name": name, "anchor": anchor, "verdict": verdict, "span": span, "grouped": grouped,
		"reasons": reasons, "class": class,
		"from": fromFault, "capital": capital, "over": over,
		"lower":    func(s string) string { return strings.ToLower(s) },
		"percent":  percent,
		"telling":  worthTelling,
		"timeline": func(r *journal.Report) template.HTML { return template.HTML(drawTimeline(r)) },
		"legs":     legs,
		"stages":   func(r *journal.Report) template.HTML { return template.HTML(drawStages(r)) },
		"worst":    worst,
		"list":     indices,
		"passed":   func(r *journal.Report) int { return len(r.Checks) - failures(r) },
		"failed":   failures,
	}).Parse(source)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	if err := t.Execute(w, reports); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}

// worst is the longest latency of any phase, in seconds.
func worst(r *journal.Report) (seconds float64) {
	for _, p := range r.Phases {
		seconds = max(seconds, p.Worst)
	}
	return seconds
}

// failures are the checks that did not pass.
func failures(r *journal.Report) (n int) {
	for _, c := range r.Checks {
		if !c.Passed {
			n++
		}
	}
	return n
}

// percent is a share of a phase's requests.
func percent(n, of int) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("%.3g %%", 100*float64(n)/float64(of))
}

// indices are 0 to n-1, for a template.
func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
