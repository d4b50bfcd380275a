package page

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

// Text writes one report for a terminal.
func Text(w io.Writer, r *journal.Report) error {
	t := &text{}
	t.linef("%s  %s", verdict(r.Passed), name(r))
	t.linef("%s %s, %.1f s.", r.Title, capital(r.Topology), r.Seconds)
	t.marks(r)
	t.phases(r)
	t.numbers(r)
	t.checks(r)
	if r.Evidence != "" {
		t.linef("")
		t.linef("logs and states are in %s", r.Evidence)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// Summary writes a line for each report, for a run of several.
func Summary(w io.Writer, reports []*journal.Report) error {
	t := &text{}
	t.linef("")
	rows := []string{"drill\t\tT4-T0\tT5-T0\tT5-switch\tT6-T0\tworst\tover-admitted"}
	for _, r := range reports {
		worst := 0.0
		for _, p := range r.Phases {
			worst = max(worst, p.Worst)
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", name(r), verdict(r.Passed),
			r.Marks.Promoted.Since(r.Marks.Fault), r.Recovery, r.AfterSwitch, r.Stabilization, span(worst), over(r)))
	}
	t.table(rows...)
	_, err := io.WriteString(w, t.String())
	return err
}

// over is by how much all rations together were exceeded.
func over(r *journal.Report) string {
	if len(r.Ledgers) == 0 {
		return "-"
	}
	sum := 0.0
	for _, l := range r.Ledgers {
		sum += l.Over
	}
	return fmt.Sprintf("%.0f", sum)
}

// text builds the text form.
type text struct{ strings.Builder }

func (t *text) linef(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

// table aligns rows whose cells are separated by tabs.
func (t *text) table(rows ...string) {
	w := tabwriter.NewWriter(t, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(w, "  %s\n", row)
	}
	_ = w.Flush() // a Builder takes everything
}

func (t *text) marks(r *journal.Report) {
	t.linef("")
	var rows []string
	for _, m := range r.Marks.List() {
		if !m.Happened {
			continue
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s", m.Short, fromFault(r, m.At.Seconds()), m.Long))
	}
	t.table(rows...)
	for _, l := range [...]struct {
		name string
		took journal.Moment
	}{
		{"without the store (T5-T0)", r.Recovery},
		{"the service's own part (T5 after +switch-master)", r.AfterSwitch},
		{"topology not whole (T6-T0)", r.Stabilization},
	} {
		if l.took.Happened {
			t.linef("%-50s %s", l.name, l.took)
		}
	}
}

func (t *text) phases(r *journal.Report) {
	t.linef("")
	rows := []string{"\tseconds\tanswers\tp50\tp99\tworst\treasons"}
	for _, p := range r.Phases {
		var counts []string
		for _, reason := range reasons(r) {
			if n := p.Reasons[reason]; n > 0 {
				counts = append(counts, fmt.Sprintf("%s %s", reason, grouped(n)))
			}
		}
		rows = append(rows, fmt.Sprintf("%s\t%.2f\t%s\t%s\t%s\t%s\t%s", p.Name, p.Seconds, grouped(p.Requests),
			span(p.P50), span(p.P99), span(p.Worst), strings.Join(counts, ", ")))
	}
	t.table(rows...)
}

func (t *text) numbers(r *journal.Report) {
	t.linef("")
	var accepted []string
	for _, c := range r.Connects {
		accepted = append(accepted, fmt.Sprintf("%s %d (at most %d between two looks)", c.Node, c.Accepted, c.Peak))
	}
	if len(accepted) > 0 {
		t.linef("connections accepted since the fault: %s", strings.Join(accepted, ", "))
	}
	for _, v := range r.Votes {
		t.linef("CKQUORUM %s %s: %s", fromFault(r, v.At), v.Sentinel, v.Text)
	}
	if r.NotOffered > 0 {
		t.linef("%d requests could not be offered in time: this machine is too busy", r.NotOffered)
	}
}

func (t *text) checks(r *journal.Report) {
	t.linef("")
	var rows []string
	for _, c := range r.Checks {
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\twant %s", verdict(c.Passed), c.Name, c.Got, c.Want))
	}
	t.table(rows...)
}

// capital begins a sentence.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
