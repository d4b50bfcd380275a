package preflight

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Check describes one check, for people.
type Check struct {
	// ID is its name in reports; it never changes.
	ID string
	// Looks says what it looks at.
	Looks string
	// Warns and Fails are its thresholds; empty if it never does.
	Warns, Fails string
	// Remedy is what to do, unless a finding knows better.
	Remedy string
	// Setups are those it applies to.
	Setups []Setup

	judge func(*facts, *verdict)
}

// Catalogue lists every check in the order of reports.
func Catalogue() []Check {
	return slices.Concat(
		networkChecks(), loadChecks(), accessChecks(), memoryChecks(), replicationChecks(), streamChecks(),
		sentinelChecks(), sentinelFileChecks(), failoverChecks(), clusterChecks(),
	)
}

// nobodyAsked is the reason of a check that has nothing to go by.
const nobodyAsked = "no server could be asked"

// verdict collects what one check finds.
type verdict struct {
	check   *Check
	praise  string
	results []Result
}

// pass is what to say if nothing worse is found.
func (v *verdict) pass(format string, args ...any) { v.praise = fmt.Sprintf(format, args...) }

// warn, fail and skip add a finding about the server at node, or about the whole set-up if node is empty. The result
// may be changed until the next finding.
func (v *verdict) warn(node, format string, args ...any) *Result {
	return v.add(Warn, node, fmt.Sprintf(format, args...))
}

func (v *verdict) fail(node, format string, args ...any) *Result {
	return v.add(Fail, node, fmt.Sprintf(format, args...))
}

func (v *verdict) skip(node, format string, args ...any) *Result {
	r := v.add(Skip, node, fmt.Sprintf(format, args...))
	r.Remedy = ""
	return r
}

func (v *verdict) add(status Status, node, reason string) *Result {
	r := Result{Check: v.check.ID, Status: status, Reason: clean(reason), Remedy: v.check.Remedy}
	if node != "" {
		r.Nodes = []string{clean(node)}
	}
	v.results = append(v.results, r)
	return &v.results[len(v.results)-1]
}

// knows tells whether p of the server is known, and else says why not.
func (v *verdict) knows(s *server, p part) bool {
	why, missing := s.missing[p]
	if missing {
		v.skip(s.address, "%s", why)
	}
	return !missing
}

// conclude is the check's part of the report. Findings that differ only in the server become one.
func (v *verdict) conclude() []Result {
	var merged []Result
	for _, r := range v.results {
		same := slices.IndexFunc(merged, func(m Result) bool {
			return len(m.Nodes) > 0 && len(r.Nodes) > 0 &&
				m.Status == r.Status && m.Reason == r.Reason && m.Remedy == r.Remedy
		})
		if same >= 0 {
			merged[same].Nodes = append(merged[same].Nodes, r.Nodes...)
			continue
		}
		merged = append(merged, r)
	}
	wrong := slices.ContainsFunc(merged, func(r Result) bool { return r.Status >= Warn })
	switch {
	case v.praise != "" && !wrong:
		praise := Result{Check: v.check.ID, Status: Pass, Reason: clean(v.praise)}
		return append([]Result{praise}, merged...)
	case len(merged) == 0:
		return []Result{{Check: v.check.ID, Status: Skip, Reason: nobodyAsked}}
	default:
		return merged
	}
}

// clean makes what servers said fit for a terminal, and for one line.
func clean(s string) string {
	const longest = 300
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "..."
	}
	return s
}

// judge runs every check that applies.
func judge(f *facts) []Result {
	var all []Result
	for _, c := range Catalogue() {
		if !slices.Contains(c.Setups, f.setup) {
			continue
		}
		v := &verdict{check: &c}
		c.judge(f, v)
		all = append(all, v.conclude()...)
	}
	return all
}
