package load

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteText writes the report for a reader.
func (r Report) WriteText(w io.Writer) error {
	t := &text{}
	t.head(r)
	t.answers(r.All)
	t.latency(r.All.Latency)
	t.processes(r)
	if r.Fault != nil {
		t.fault(r.Fault)
	}
	if r.Overshoot != nil {
		t.overshoot(r.Overshoot)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// text builds the text form.
type text struct{ strings.Builder }

func (t *text) linef(format string, args ...any) {
	fmt.Fprintf(t, format+"\n", args...)
}

// table aligns rows whose cells are separated by tabs; the columns are set flush right.
func (t *text) table(rows ...string) {
	w := tabwriter.NewWriter(t, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		fmt.Fprintf(w, "%s\t\n", row)
	}
	_ = w.Flush() // a Builder takes everything
}

func (t *text) head(r Report) {
	t.linef("%s loop, %d connections x %d streams, %.2f s at %s", r.Loop, r.Connections, r.Streams,
		r.All.Seconds, r.Target)
	t.linef("keys           %s, %s, seed %d", grouped(int64(r.Keys)), r.Dist, r.Seed)
	t.linef("requests       %s, %s a second", grouped(r.All.Requests), grouped(int64(r.All.RequestsPerSecond)))
	if r.OfferedPerSecond > 0 {
		t.linef("offered        %s a second; %s could not be offered; sent late by up to %s, p99 %s",
			grouped(int64(r.OfferedPerSecond)), grouped(r.NotOffered), span(r.SendDelayMax), span(r.SendDelayP99))
	}
	t.linef("connections    %d opened, %d attempts failed", r.ConnectionsOpened, r.ConnectionsFailed)
}

func (t *text) answers(p Phase) {
	t.linef("")
	t.linef("answers")
	rows := make([]string, len(p.Answers))
	for i, a := range p.Answers {
		kind := a.Answer
		if a.Reason != "" && a.Reason != a.Answer {
			kind += " " + a.Reason
		}
		rows[i] = fmt.Sprintf("%s\t%s\t%s", kind, grouped(a.Requests), percent(a.Requests, p.Requests))
	}
	t.table(rows...)
}

func (t *text) latency(l Latency) {
	t.linef("")
	t.linef("latency, of all answers")
	t.table(
		"mean\tp50\tp90\tp99\tp99.9\tp99.99\tworst",
		strings.Join([]string{
			span(l.Mean), span(l.P50), span(l.P90), span(l.P99), span(l.P999), span(l.P9999), span(l.Max),
		}, "\t"),
	)
}

func (t *text) processes(r Report) {
	if len(r.CPU) == 0 && r.Generator == nil {
		return
	}
	t.linef("")
	t.linef("processor")
	rows := []string{"process\tpid\tcores\tper request"}
	for _, c := range r.CPU {
		rows = append(rows, processorRow(c.Name, c))
	}
	if r.Generator != nil {
		rows = append(rows, processorRow("this load generator", *r.Generator))
	}
	t.table(rows...)
}

func processorRow(name string, c CPU) string {
	if c.Gone {
		return fmt.Sprintf("%s\t%d\tgone\t-", name, c.PID)
	}
	return fmt.Sprintf("%s\t%d\t%.2f\t%.1f us", name, c.PID, c.Cores, c.MicrosecondsPerRequest)
}

func (t *text) fault(f *FaultReport) {
	t.linef("")
	t.linef("fault, from %.3f s to %.3f s", f.Began, f.Ended)
	rows := []string{"\tseconds\trequests\ta second\tOK\tover limit\terrors\tunanswered\tdegraded\tp50\tp99\tworst"}
	for _, p := range f.Phases {
		rows = append(rows, fmt.Sprintf("%s\t%.2f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", p.Name, p.Seconds,
			grouped(p.Requests), grouped(int64(p.RequestsPerSecond)), grouped(p.Admitted), grouped(p.OverLimit),
			grouped(p.Errors), grouped(p.Unanswered), grouped(p.Degraded),
			span(p.Latency.P50), span(p.Latency.P99), span(p.Latency.Max)))
	}
	t.table(rows...)
	if f.Recovered {
		t.linef("  first ordinary answer %s after the fault ended", span(f.Recovery))
	} else {
		t.linef("  no ordinary answer came after the fault ended")
	}
	if f.Settled > 0 {
		t.linef("  last error or degraded answer %s after it ended", span(f.Settled))
	}
	t.linef("  reconnects: %d in the fault, %d after it", f.ReconnectsDuring, f.ReconnectsAfter)
}

func (t *text) overshoot(o *Overshoot) {
	t.linef("")
	t.linef("limit of %g hits a second and a burst of %g, over %.2f s, keys: %s", o.LimitPerSecond, o.LimitBurst,
		o.Seconds, grouped(int64(o.Keys)))
	t.linef("  admitted %s hits of %s that the limit allows (%.4g %%)", grouped(o.Admitted), grouped(int64(o.Allowed)),
		100*ratio(float64(o.Admitted), o.Allowed))
	if o.KeysOver == 0 {
		t.linef("  no key was admitted more than its limit")
		return
	}
	t.linef("  keys over their limit: %s, by %s hits; key %d was admitted the most, %s", grouped(int64(o.KeysOver)),
		grouped(int64(o.Excess)), o.WorstKey, grouped(o.WorstAdmitted))
}

// span is a duration in seconds with three digits and a unit that fits.
func span(seconds float64) string {
	switch {
	case seconds == 0:
		return "0"
	case seconds < 1e-3:
		return fmt.Sprintf("%.3g us", seconds*1e6)
	case seconds < 1:
		return fmt.Sprintf("%.3g ms", seconds*1e3)
	default:
		return fmt.Sprintf("%.2f s", seconds)
	}
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func percent(n, of int64) string {
	return fmt.Sprintf("%.4g %%", 100*ratio(float64(n), float64(of)))
}
