package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/honestlimit/ratelimit/internal/drill"
	"github.com/honestlimit/ratelimit/test/sheet"
)

// What is written below the checkout, from page and the results.
const (
	document = "docs/failure-matrix.md"
	drawing  = "docs/failure-matrix/timeline.svg"
)

//go:embed page.md
var page string

func (r *results) write(root string) error {
	text, err := r.render()
	if err != nil {
		return err
	}
	picture := filepath.Join(root, drawing)
	return errors.Join(
		os.MkdirAll(filepath.Dir(picture), 0o755), os.WriteFile(picture, r.timeline(), 0o644),
		os.WriteFile(filepath.Join(root, document), text, 0o644),
	)
}

// render fills the page in.
func (r *results) render() ([]byte, error) {
	t, err := template.New("page").Parse(page)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]string{
		"Verdict": r.verdict(), "Summary": r.summary(), "Faults": faultList(), "Origin": r.origin(),
		"Standalone": r.section(drill.Standalone), "Sentinel": r.section(drill.Sentinel), "Cluster": r.section(drill.Cluster),
		"Others": r.others(),
	})
	return out.Bytes(), err
}

// all are the rows of every topology.
func (r *results) all() []shown {
	var list []shown
	for _, on := range topologies {
		list = append(list, r.rows(on)...)
	}
	return list
}

// verdict is the whole matrix in a sentence.
func (r *results) verdict() string {
	var runs, requests, outside, failed, beyond, blind int
	for _, s := range r.all() {
		if s.failed() {
			failed++
		}
		for _, f := range s.Runs {
			runs++
			requests += f.Requests
			outside += f.Outside
			if f.Admitted > f.Bound {
				beyond++
			}
			if f.Blind > f.BlindBound {
				blind++
			}
		}
	}
	text := fmt.Sprintf("**%s, %s, %s: %s had an answer outside the decision table, %s admitted more\n"+
		"than the formulas allow, %s let more than the emergency limit pass without the store.**",
		plural(len(r.all()), "row"), plural(runs, "run"),
		plural(requests, "request"), none(outside, "request"), none(beyond, "run"), none(blind, "run"))
	if failed > 0 {
		text += fmt.Sprintf("\n**%s FAILED**, and the tables say why.", plural(failed, "row"))
	}
	return text
}

// summary has a row for each fault and a column for each topology.
func (r *results) summary() string {
	t := sheet.NewTable("", "standalone", "Sentinel", "Cluster: the shard that it happens to")
	for _, f := range faults() {
		cells := []string{f.name}
		for _, on := range topologies {
			cell := "-"
			for _, s := range r.rows(on) {
				if s.id == f.id {
					cell = s.brief()
				}
			}
			cells = append(cells, cell)
		}
		t.Row(cells...)
	}
	return t.String()
}

// section is the table of one topology, and what its rows missed.
func (r *results) section(on drill.Topology) string {
	rows := r.rows(on)
	if len(rows) == 0 {
		return "Not measured yet.\n"
	}
	t := sheet.NewTable("fault", "without the store", "back", "for good", "", "answers during the fault",
		"p50", "p99", "worst", "outside the table", "admitted beyond the limit")
	var misses strings.Builder
	for _, s := range rows {
		s.lines(t)
		for _, f := range s.Runs {
			for _, miss := range f.Failures {
				fmt.Fprintf(&misses, "- **FAILED** %s: %s\n", s.name, miss)
			}
		}
	}
	if misses.Len() > 0 {
		return t.String() + "\n" + misses.String()
	}
	return t.String()
}

// lines are two, one for each fail mode; what both have in common is in the first.
func (s shown) lines(t *sheet.Table) {
	for _, mode := range []string{failClosed, failOpen} {
		cells := []string{"", "", s.counts(), ""}
		outside, beyond := "", s.blind()
		if mode == failClosed {
			cells = []string{s.mark() + s.name, s.without(), s.back(), s.settled()}
			outside, beyond = fmt.Sprint(s.outside()), s.admitted()
		}
		cells = append(cells, "`"+mode+"`", s.answers(mode))
		for _, figure := range []func(answers) float64{
			func(a answers) float64 { return a.P50 },
			func(a answers) float64 { return a.P99 },
			func(a answers) float64 { return a.Worst },
		} {
			cells = append(cells, s.latency(mode, figure))
		}
		t.Row(append(cells, outside, beyond)...)
	}
}

// counts says what the recovery counts from.
func (s shown) counts() string {
	switch {
	case s.ending == unnoticed:
		return ""
	case s.ending == outage:
		return "after " + cmp.Or(s.variant.ends, s.fault.ends)
	case s.on == drill.Cluster:
		return "after a node names the new owner"
	default:
		return "after `+switch-master`"
	}
}

// others is what became of the buckets in the shards of the Cluster that nothing happened to.
func (r *results) others() string {
	count, ordinary := 0, 0
	var p99 float64
	for _, s := range r.rows(drill.Cluster) {
		for _, f := range s.Runs {
			a := f.Modes[elsewhere]
			count += a.Count
			ordinary += a.ByReason["200 ALLOWED"]
			p99 = max(p99, a.P99)
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("The buckets of the other shards, over all of these faults: %s during the fault, %s of them\n"+
		"decided by the store as ever; the highest p99 of a row is %s.\n",
		plural(count, "answer"), percent(ordinary, count), span(p99))
}

// faultList says what is done.
func faultList() string {
	var text strings.Builder
	for _, f := range faults() {
		fmt.Fprintf(&text, "- **%s** (`%s`): %s\n", upperFirst(f.name), f.id, f.done)
	}
	return text.String()
}

// origin says where and how, once for all rows that have it in common.
func (r *results) origin() string {
	var list []string
	var stall float64
	for _, s := range r.all() {
		o := s.Origin
		line := fmt.Sprintf("%s; %s; %.0f requests a second, budget %v, down-after and node timeout %v; %s.",
			o.When.UTC().Format("2006-01-02"), o.Machine, o.Rate, o.Budget, o.DownAfter, plural(len(s.Runs), "run")+" each")
		if !slices.Contains(list, line) {
			list = append(list, line)
		}
		for _, f := range s.Runs {
			stall = max(stall, f.Stall)
		}
	}
	if len(list) == 0 {
		return "Not measured yet.\n"
	}
	return fmt.Sprintf("%s\nThe longest that the load generator itself waited for a processor: %s.\n",
		strings.Join(list, "\n"), span(stall))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(n) + " " + what + "s"
}

// none is plural that says "no" for 0, and begins no sentence.
func none(n int, what string) string {
	if n == 0 {
		return "no " + what
	}
	return plural(n, what)
}

// thousands puts commas in.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
