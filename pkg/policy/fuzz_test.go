package policy

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

// sample is a descriptor that the pattern matches.
func (p Pattern) sample() []Entry {
	entries := make([]Entry, len(p))
	for i, m := range p {
		value := m.text
		if m.kind == globbed {
			value = m.glob.prefix + strings.Join(m.glob.middle, "/") + m.glob.suffix
		}
		entries[i] = Entry{Key: m.key, Value: value}
	}
	return entries
}

// Whatever a file holds: it is refused with faults that have a position inside it, or every policy in it is within
// bounds and reachable, if only because a more specific one takes its place.
func FuzzParse(f *testing.F) {
	faulty, err := os.ReadFile("testdata/faulty.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(faulty)
	for _, seed := range []string{
		"domain: mesh\npolicies:\n  - endpoint_id: a\n    descriptor: [{key: e, value: 'x*y*'}, {key: t}]\n" +
			"    token_bucket: {rate: 10/s, burst: 20}\n    fail_mode: fail_open\n    fallback_rate_per_process: 1/min\n" +
			"---\ndomain: mesh\npolicies:\n  - endpoint_id: b\n    descriptor: [{key: e}, {key: t, shared: true}]\n" +
			"    sliding_window: {limit: 1_000, window: 7d}\n    fail_mode: fail_closed\n    min_cost: 0\n    max_cost: 9\n",
		"domain: mesh\nshard_by: [t, u]\npolicies:\n  - endpoint_id: a\n    descriptor: [{key: u}, {key: t, value: x}]\n" +
			"    token_bucket: {rate: 10/s}\n    fail_mode: fail_closed\n",
		"domain: &a [*a]\n", "<<: {a: b}\n", "? [a]\n: b\n", "a:\n  - b\n - c\n", "\ta: b", "'\x85", "%TAG ! !\n---\n!a b",
		"--- #a\n#b\n...\n#c\n", "a: !!binary x\nb: !!float 1\n", "domain: \xff", "- #\n\n  #\n -", "a: |\n\t\n  b\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		set, err := Parse("f.yaml", content)
		if err != nil {
			checkFaults(t, content, err)
			return
		}
		for _, name := range set.Domains() {
			for _, p := range set.Domain(name).policies {
				checkPolicy(t, set.Domain(name), p)
			}
		}
		if again, _ := Parse("g.yaml", content); again.Version() != set.Version() {
			t.Errorf("Version = %s, then %s", set.Version(), again.Version())
		}
	})
}

func checkFaults(t *testing.T, content []byte, err error) {
	t.Helper()
	var faults Faults
	if !errors.As(err, &faults) || len(faults) == 0 {
		t.Fatalf("Parse = %v, want faults", err)
	}
	lines := 1 + strings.Count(strings.NewReplacer("\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").
		Replace(string(content)), "\n")
	for _, fault := range faults {
		if fault.Text == "" || fault.Line < 0 || fault.Line > lines || fault.Line > 0 && fault.Column < 1 {
			t.Errorf("fault %+v of %d lines", fault, lines)
		}
	}
	if !slices.Equal(faults, faults.sorted()) {
		t.Errorf("faults are not in order:\n%v", faults)
	}
}

func checkPolicy(t *testing.T, d *Domain, p *Policy) {
	t.Helper()
	if err := p.Limit.Validate(); err != nil {
		t.Error(err)
	}
	fallback := p.Endpoint.Fallback
	switch p.Endpoint.FailMode {
	case limit.FailOpen:
		if err := fallback.Validate(); err != nil {
			t.Error(err)
		}
	case limit.FailClosed:
		if fallback != (limit.Rate{}) {
			t.Errorf("fail_closed with fallback %+v", fallback)
		}
	default:
		t.Errorf("fail mode %v", p.Endpoint.FailMode)
	}
	if p.MinCost < 0 || p.MaxCost < max(1, p.MinCost) || p.MaxCost > p.Limit.Tokens() || p.Version < 1 {
		t.Errorf("costs from %d to %d, capacity %d, version %d", p.MinCost, p.MaxCost, p.Limit.Tokens(), p.Version)
	}
	asked := p.Pattern.sample()
	got := d.Match(asked)
	if got == nil || got.Pattern.compare(p.Pattern) > 0 {
		t.Fatalf("Match(%q) = %+v, want %v or a more specific one", asked, got, p.Pattern)
	}
	if key := got.BucketKey(asked); !strings.HasSuffix(key, got.naming.suffix[1:]) || len(key) > 256 {
		t.Errorf("BucketKey = %q", key)
	}
}

// A glob's canonical text reads back as the same glob, and matches as the plainest matcher does.
func FuzzMatcher(f *testing.F) {
	for _, seed := range [][2]string{
		{"*", ""}, {"a*b", "ab"}, {`\**\\`, `*x\`}, {"**a**b**", "xaxbx"}, {"aba*aba", "aba"}, {"*aa*aa", "aaa"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, value string) {
		m, err := newMatcher("k", pattern)
		if err != nil {
			return
		}
		if len(pattern)+len(value) < 24 && m.accepts(value) != plainly(pattern, value) {
			t.Errorf("%q accepts %q = %t, want the opposite", pattern, value, m.accepts(value))
		}
		if m.kind != globbed {
			return
		}
		again, err := newMatcher("k", m.text)
		if err != nil || again.compare(m) != 0 || again.text != m.text {
			t.Errorf("%q is %q, which is read as %q, %v", pattern, m.text, again.text, err)
		}
	})
}

// plainly matches one character of the pattern at a time.
func plainly(pattern, s string) bool {
	switch {
	case pattern == "":
		return s == ""
	case pattern[0] == '*':
		return plainly(pattern[1:], s) || s != "" && plainly(pattern, s[1:])
	case pattern[0] == '\\':
		return s != "" && s[0] == pattern[1] && plainly(pattern[2:], s[1:])
	default:
		return s != "" && s[0] == pattern[0] && plainly(pattern[1:], s[1:])
	}
}
