package policy_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/pkg/policy"
)

func TestDomain_Match(t *testing.T) {
	const tenants = "[{key: e, value: x}, {key: tenant}]"
	for _, tt := range []struct {
		name     string
		policies []string
		asked    []policy.Entry
		want     string // "" for none
	}{
		{"no entries", []string{"[{key: a}]"}, nil, ""},
		{"one exact value", []string{"[{key: a, value: b}]"}, descriptor("a", "b"), "p0"},
		{"another value", []string{"[{key: a, value: b}]"}, descriptor("a", "c"), ""},
		{"another key", []string{"[{key: a}]"}, descriptor("b", "x"), ""},
		{"an entry too few", []string{tenants}, descriptor("e", "x"), ""},
		{"an entry too many", []string{tenants}, descriptor("e", "x", "tenant", "t", "u", "v"), ""},
		{"another order", []string{tenants}, descriptor("tenant", "t", "e", "x"), ""},
		{"no value is any value", []string{tenants}, descriptor("e", "x", "tenant", "anything"), "p0"},
		{"any value may be empty", []string{tenants}, descriptor("e", "x", "tenant", ""), "p0"},
		{"a star alone is any value", []string{`[{key: a, value: "**"}]`}, descriptor("a", ""), "p0"},
		{"an empty value is itself", []string{`[{key: a, value: ""}]`}, descriptor("a", ""), "p0"},
		{"an empty value is not any", []string{`[{key: a, value: ""}]`}, descriptor("a", "x"), ""},
		{"the same key twice", []string{"[{key: a, value: x}, {key: a}]"}, descriptor("a", "x", "a", "y"), "p0"},
		{"exact wins over any", []string{"[{key: a}]", "[{key: a, value: b}]"}, descriptor("a", "b"), "p1"},
		{"exact wins over glob", []string{"[{key: a, value: 'b*'}]", "[{key: a, value: b}]"}, descriptor("a", "b"), "p1"},
		{"glob wins over any", []string{"[{key: a}]", "[{key: a, value: '*b*'}]"}, descriptor("a", "abc"), "p1"},
		{
			"longer prefix wins",
			[]string{"[{key: a, value: '/a*'}]", "[{key: a, value: '/api/*'}]", "[{key: a, value: '/ap*'}]"},
			descriptor("a", "/api/x"), "p1",
		},
		{
			"prefix wins over more literals",
			[]string{"[{key: a, value: 'a*bcdefgh'}]", "[{key: a, value: 'ab*'}]"},
			descriptor("a", "abcdefgh"), "p1",
		},
		{
			"then more literals",
			[]string{"[{key: a, value: 'a*h'}]", "[{key: a, value: 'a*gh'}]"},
			descriptor("a", "abcdefgh"), "p1",
		},
		{
			"then fewer stars",
			[]string{"[{key: a, value: 'a*g*h'}]", "[{key: a, value: 'a*gh'}]"},
			descriptor("a", "abcdefgh"), "p1",
		},
		{
			"then the longer suffix",
			[]string{"[{key: a, value: 'a*fg*h'}]", "[{key: a, value: 'a*f*gh'}]"},
			descriptor("a", "abcdefgh"), "p1",
		},
		{
			"then the text",
			[]string{"[{key: a, value: 'a*c*h'}]", "[{key: a, value: 'a*b*h'}]"},
			descriptor("a", "abcdefgh"), "p1",
		},
		{
			"the first entry decides",
			[]string{"[{key: a}, {key: b, value: x}]", "[{key: a, value: x}, {key: b}]"},
			descriptor("a", "x", "b", "x"), "p1",
		},
		{
			"back out of an exact dead end",
			[]string{"[{key: a, value: x}, {key: b, value: y}]", "[{key: a}, {key: b}]"},
			descriptor("a", "x", "b", "z"), "p1",
		},
		{
			"back out of two globs",
			[]string{
				"[{key: a, value: 'xy*'}, {key: b, value: y}]",
				"[{key: a, value: 'x*'}, {key: b, value: w}]",
				"[{key: a}, {key: b}]",
			},
			descriptor("a", "xyz", "b", "z"), "p2",
		},
		{"prefix and suffix may not overlap", []string{"[{key: a, value: 'aba*ab'}]"}, descriptor("a", "abab"), ""},
		{"prefix and suffix may touch", []string{"[{key: a, value: 'ab*ab'}]"}, descriptor("a", "abab"), "p0"},
		{"parts in order", []string{"[{key: a, value: '*b*c*'}]"}, descriptor("a", "acb"), ""},
		{"a star takes slashes", []string{"[{key: a, value: '/a/*/z'}]"}, descriptor("a", "/a/b/c/z"), "p0"},
		{"a literal star", []string{`[{key: a, value: 'a\*'}]`}, descriptor("a", "a*"), "p0"},
		{"a literal star is no wildcard", []string{`[{key: a, value: 'a\*'}]`}, descriptor("a", "ab"), ""},
		{"a literal backslash", []string{`[{key: a, value: 'a\\*'}]`}, descriptor("a", `a\b`), "p0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if p := mesh(t, tt.policies...).Match(tt.asked); p != nil {
				got = p.Endpoint.ID
			}
			if got != tt.want {
				t.Errorf("Match(%q) = %q, want %q", tt.asked, got, tt.want)
			}
		})
	}
}

// reference is a pattern as it is written, without escapes, and the plainest possible meaning of it.
type reference struct {
	id      string
	entries []policy.Entry
}

func (r reference) String() string {
	var entries []string
	for _, e := range r.entries {
		entries = append(entries, fmt.Sprintf("{key: %s, value: %q}", e.Key, e.Value))
	}
	return "[" + strings.Join(entries, ", ") + "]"
}

func (r reference) matches(asked []policy.Entry) bool {
	return slices.EqualFunc(r.entries, asked, func(want, e policy.Entry) bool {
		return want.Key == e.Key && wild(want.Value, e.Value)
	})
}

func wild(pattern, s string) bool {
	switch {
	case pattern == "":
		return s == ""
	case pattern[0] == '*':
		return wild(pattern[1:], s) || s != "" && wild(pattern, s[1:])
	default:
		return s != "" && s[0] == pattern[0] && wild(pattern[1:], s[1:])
	}
}

// compare orders patterns with the same keys by the rules, as README.md states them.
func (r reference) compare(o reference) int {
	for i := range r.entries {
		a, b := r.entries[i].Value, o.entries[i].Value
		if c := cmp.Or(
			cmp.Compare(class(a), class(b)),
			cmp.Compare(strings.Index(b, "*"), strings.Index(a, "*")),
			cmp.Compare(len(b)-strings.Count(b, "*"), len(a)-strings.Count(a, "*")),
			cmp.Compare(strings.Count(a, "*"), strings.Count(b, "*")),
			cmp.Compare(strings.LastIndex(a, "*")-len(a), strings.LastIndex(b, "*")-len(b)),
			cmp.Compare(a, b),
		); c != 0 {
			return c
		}
	}
	return 0
}

func class(value string) int {
	switch {
	case !strings.Contains(value, "*"):
		return 1
	case value != "*":
		return 2
	default:
		return 3
	}
}

// random draws texts over two letters, so that patterns often overlap.
type random struct{ *rand.Rand }

func (r random) text(letters string, most int) string {
	b := make([]byte, r.IntN(most+1))
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

func (r random) entries(letters string) []policy.Entry {
	entries := make([]policy.Entry, 1+r.IntN(3))
	for i := range entries {
		value := r.text(letters, 5)
		for strings.Contains(value, "**") {
			value = strings.ReplaceAll(value, "**", "*")
		}
		if r.IntN(4) == 0 && strings.Contains(letters, "*") {
			value = "*"
		}
		entries[i] = policy.Entry{Key: string("kl"[r.IntN(8)/7]), Value: value}
	}
	return entries
}

func (r random) references() []reference {
	var all []reference
	seen := map[string]bool{}
	for range 1 + r.IntN(60) {
		ref := reference{entries: r.entries("aab*")}
		if !seen[ref.String()] {
			seen[ref.String()] = true
			ref.id = fmt.Sprintf("p%d", len(all))
			all = append(all, ref)
		}
	}
	return all
}

// file writes the policies in random order into one or more documents.
func (r random) file(all []reference) string {
	const head = "domain: mesh\npolicies:\n"
	var b strings.Builder
	b.WriteString(head)
	for i, n := range r.Perm(len(all)) {
		if i > 0 && r.IntN(10) == 0 {
			b.WriteString("---\n" + head)
		}
		fmt.Fprintf(&b, "  - {endpoint_id: %s, descriptor: %s, token_bucket: {rate: 1/s}, fail_mode: fail_closed}\n",
			all[n].id, all[n])
	}
	return b.String()
}

// The tree agrees with the rules applied to one policy after the other, in whatever order the file has them.
func TestDomain_Match_agreesWithLinearSearch(t *testing.T) {
	r := random{rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))}
	matched := 0
	for range 200 {
		all := r.references()
		file := r.file(all)
		d := parse(t, file).Domain("mesh")
		for range 200 {
			asked := r.entries("ab")
			want := ""
			var best reference
			for _, ref := range all {
				if ref.matches(asked) && (want == "" || ref.compare(best) < 0) {
					want, best = ref.id, ref
				}
			}
			got := ""
			if p := d.Match(asked); p != nil {
				got = p.Endpoint.ID
				matched++
			}
			if got != want {
				t.Fatalf("Match(%q) = %q, want %q, of\n%s", asked, got, want, file)
			}
		}
	}
	if matched < 1000 {
		t.Errorf("only %d of 40000 descriptors matched anything", matched)
	}
}

// crowd returns a domain of n policies of one kind, and a descriptor that one in the middle matches.
func crowd(tb testing.TB, form string, n int) (*policy.Domain, []policy.Entry) {
	tb.Helper()
	descriptors := make([]string, n)
	for i := range descriptors {
		descriptors[i] = fmt.Sprintf("[{key: path, value: '"+form+"'}, {key: tenant}]", i)
	}
	asked := strings.ReplaceAll(fmt.Sprintf(form, n/2), "*", "rest")
	return mesh(tb, descriptors...), descriptor("path", asked, "tenant", "acme")
}

var forms = []struct{ name, form string }{
	{"exact", "/api/v1/%d"},
	{"prefix", "/api/%d/*"},
	{"suffix", "*.%d.example.com"},
	{"both", "/api/%d/*/x"},
}

// In a domain of 10,000 policies Match allocates nothing, and a thousand times the policies cost at most 30 times as
// much. A linear search would cost 1000 times as much; the tree costs up to 3 times, so a busy machine does not break
// this.
func TestDomain_Match_inManyPolicies(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			d, asked := crowd(t, f.form, 10_000)
			if d.Match(asked) == nil {
				t.Fatalf("Match(%q) = nil", asked)
			}
			if allocs := testing.AllocsPerRun(100, func() { d.Match(asked) }); allocs != 0 {
				t.Errorf("Match allocates %v times, want 0", allocs)
			}
			few, many := fastest(crowd(t, f.form, 10)), fastest(d, asked)
			if many > 30*few {
				t.Errorf("Match takes %v in 10 policies and %v in 10,000", few, many)
			}
		})
	}
}

func TestPolicy_BucketKey_allocatesTheKeyOnly(t *testing.T) {
	for _, size := range []int{8, 200, 500, 5000, 100_000} {
		d := mesh(t, "[{key: tenant}]")
		asked := descriptor("tenant", strings.Repeat("x", size))
		p := d.Match(asked)
		if allocs := testing.AllocsPerRun(100, func() { p.BucketKey(asked) }); allocs != 1 {
			t.Errorf("BucketKey of %d bytes allocates %v times, want 1", size, allocs)
		}
	}
}

// fastest is the best of many short runs, which is what the machine can do when nobody disturbs it.
func fastest(d *policy.Domain, asked []policy.Entry) time.Duration {
	best := time.Hour
	for range 50 {
		start := time.Now()
		for range 200 {
			d.Match(asked)
		}
		best = min(best, time.Since(start))
	}
	return best
}

func BenchmarkDomain_Match(b *testing.B) {
	for _, f := range forms {
		for _, n := range []int{10, 10_000} {
			b.Run(fmt.Sprintf("form=%s/policies=%d", f.name, n), func(b *testing.B) {
				d, asked := crowd(b, f.form, n)
				b.ReportAllocs()
				for b.Loop() {
					d.Match(asked)
				}
			})
		}
	}
}

func BenchmarkPolicy_BucketKey(b *testing.B) {
	for _, size := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("value=%d", size), func(b *testing.B) {
			d := mesh(b, "[{key: tenant}]")
			asked := descriptor("tenant", strings.Repeat("x", size))
			p := d.Match(asked)
			b.ReportAllocs()
			for b.Loop() {
				p.BucketKey(asked)
			}
		})
	}
}
