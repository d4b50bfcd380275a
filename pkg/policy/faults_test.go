package policy_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/pkg/policy"
)

var update = flag.Bool("update", false, "write the golden files")

// One file with many different mistakes: all are found at once, in order, with their positions.
func TestParse_findsAllFaultsAtOnce(t *testing.T) {
	content, err := os.ReadFile("testdata/faulty.yaml")
	must(t, err)
	_, err = policy.Parse("faulty.yaml", content)
	compareGolden(t, "testdata/faulty.golden", err.Error()+"\n")
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		must(t, os.WriteFile(name, []byte(got), 0o644))
	}
	want, err := os.ReadFile(name)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// onePolicy is a file whose policy has the given fields in place of those of the same name.
func onePolicy(fields ...string) string {
	all := []string{
		"endpoint_id: x", "descriptor: [{key: k}]", "token_bucket: {rate: 10/s, burst: 20}", "fail_mode: fail_closed",
	}
	for _, f := range fields {
		name, _, _ := strings.Cut(f, ":")
		at := -1
		for i := range all {
			if strings.HasPrefix(all[i], name+":") || name == "sliding_window" && strings.HasPrefix(all[i], "token_bucket:") {
				at = i
			}
		}
		if at < 0 {
			all = append(all, f)
			continue
		}
		all[at] = f
	}
	return "domain: mesh\npolicies:\n  - " + strings.Join(all, "\n    ") + "\n"
}

// keysFrom are entries whose keys are letters.
func keysFrom(from, to rune) string {
	var entries []string
	for letter := from; letter <= to; letter++ {
		entries = append(entries, fmt.Sprintf("{key: '%c'}", letter))
	}
	return strings.Join(entries, ", ")
}

// Each fault alone, with its position; testdata/faults.golden has what is said of it.
func TestParse_faults(t *testing.T) {
	var got strings.Builder
	for _, tt := range []struct{ name, content string }{
		{"an empty file", ""},
		{"comments only", "# nothing\n"},
		{"empty documents only", "---\n---\n"},
		{"a list", "- a\n"},
		{"not UTF-8", "domain: me\xffsh\n"},
		{"UTF-16", "\xff\xfed\x00"},
		{"a control character", "domain: é\x01\n"},
		{"a tab", "domain: mesh\npolicies:\n\t- x\n"},
		{"an open bracket", "domain: [mesh\n"},
		{"an open quote", "domain: x\npolicies: 'abc\n"},
		{"a crooked list", "domain: mesh\npolicies:\n  - a: b\n    c: d\n   - e\n"},
		{"a crooked mapping", "domain: mesh\npolicies:\n  - a: b\n   c: d\n"},
		{"an undefined alias", "domain: *mesh\n"},
		{"too deep", "domain: " + strings.Repeat("[", 20_000)},
		{"too large", strings.Repeat("#", 8<<20) + "\n"},
		{"no domain", strings.TrimPrefix(onePolicy(), "domain: mesh\n")},
		{"an empty domain", strings.Replace(onePolicy(), "mesh", `""`, 1)},
		{"a number as domain", strings.Replace(onePolicy(), "mesh", "404", 1)},
		{"no policies", "domain: mesh\n"},
		{"empty policies", "domain: mesh\npolicies: []\n"},
		{"shard_by is text", strings.Replace(onePolicy(), "policies:", "shard_by: k\npolicies:", 1)},
		{"an empty shard_by", shardedFile("[]", "[{key: k}]")},
		{"an empty key in shard_by", shardedFile("[k, '']", "[{key: k}]")},
		{"a number in shard_by", shardedFile("[k, 5]", "[{key: k}]")},
		{"a list in shard_by", shardedFile("[k, [l]]", "[{key: k}]")},
		{"a key twice in shard_by", shardedFile("[k, l, k]", "[{key: k}, {key: l}]")},
		{"too many keys in shard_by", shardedFile("["+strings.Repeat("k, ", 16)+"k]", "[{key: k}]")},
		{"a misspelt key in shard_by", shardedFile("[k, tenent]", "[{key: k}]", "[{key: k}, {key: tenant}]")},
		{"a key of nothing in shard_by", shardedFile("[colour]", "[{key: k}]", "[{key: k}, {key: tenant}]")},
		{
			"a key of nothing among many",
			shardedFile("[colour]", "["+keysFrom('a', 'p')+"]", "["+keysFrom('q', 'y')+"]"),
		},
		{"a key beside a faulty descriptor", shardedFile("[tenant]", "[{key: k}]", "[{kay: tenant}]")},
		{
			"shard_by that disagrees",
			shardedFile("[k]", "[{key: k}]") + "---\n" +
				strings.Replace(shardedFile("[l, k]", "[{key: k}, {key: l}]"), "p0", "p1", 1),
		},
		{"an alias", "domain: &a mesh\npolicies: *a\n"},
		{"a merge key", onePolicy("<<: {min_cost: 1}")},
		{"a mapping as key", onePolicy("? {a: b}\n    : c")},
		{"a tagged text", onePolicy("endpoint_id: !id x")},
		{"a long endpoint_id", onePolicy("endpoint_id: " + strings.Repeat("x", 129))},
		{"a misspelt key", onePolicy("descripter: []")},
		{"a key like no other", onePolicy("colour: red")},
		{"a duplicate key", onePolicy() + "    endpoint_id: y\n"},
		{"an entry that is text", onePolicy("descriptor: [k]")},
		{"an empty key", onePolicy("descriptor: [{key: ''}]")},
		{"a value left empty", onePolicy("descriptor: [{key: k, value: }]")},
		{"a boolean value", onePolicy("descriptor: [{key: k, value: true}]")},
		{"a date as a value", onePolicy("descriptor: [{key: k, value: 2026-11-30}]")},
		{"a long value", onePolicy("descriptor: [{key: k, value: " + strings.Repeat("v", 4097) + "}]")},
		{"a lone backslash", onePolicy(`descriptor: [{key: k, value: 'a\'}]`)},
		{"shared is no boolean", onePolicy("descriptor: [{key: k, shared: 1}]")},
		{"a shared literal", onePolicy("descriptor: [{key: k, value: v, shared: true}]")},
		{"too many entries", onePolicy("descriptor: [" + strings.Repeat("{key: k}, ", 16) + "{key: k}]")},
		{"no algorithm", strings.Replace(onePolicy(), "    token_bucket: {rate: 10/s, burst: 20}\n", "", 1)},
		{"an algorithm that is text", onePolicy("token_bucket: 10/s")},
		{"an empty token bucket", onePolicy("token_bucket: {}")},
		{"a rate without a time", onePolicy("token_bucket: {rate: 10}")},
		{"a rate of nothing", onePolicy("token_bucket: {rate: 0/s}")},
		{"a negative rate", onePolicy("token_bucket: {rate: -1/s}")},
		{"a rate too slow", onePolicy("token_bucket: {rate: 0.5/y}")},
		{"a rate too fast", onePolicy("token_bucket: {rate: 1000001/s}")},
		{"a rate too fine", onePolicy("token_bucket: {rate: 0.0000001/s}")},
		{"a rate with too many digits", onePolicy("token_bucket: {rate: 1234567890123/y}")},
		{"an unknown unit", onePolicy("token_bucket: {rate: 1/fortnight}")},
		{"both rates", onePolicy("token_bucket: {rate: 1/s, refill_rate_micro_per_sec: 1000000}")},
		{"both capacities", onePolicy("token_bucket: {rate: 1/s, capacity_micro: 1000000, burst: 1}")},
		{"a fractional burst", onePolicy("token_bucket: {rate: 1/s, burst: 1.5}")},
		{"a burst too large for any integer", onePolicy("token_bucket: {rate: 1/s, burst: 99999999999999999999}")},
		{"an octal number", onePolicy("token_bucket: {rate: 1/s, burst: 010}")},
		{"a negative burst", onePolicy("token_bucket: {rate: 1/s, burst: -5}")},
		{"a capacity below a token", onePolicy("token_bucket: {rate: 1/s, capacity_micro: 999999}")},
		{"no limit", onePolicy("sliding_window: {window: 1s}")},
		{"no window", onePolicy("sliding_window: {limit: 1}")},
		{"both windows", onePolicy("sliding_window: {limit: 1, window: 1s, window_size_micro: 1000000}")},
		{"a window without a unit", onePolicy("sliding_window: {limit: 1, window: 60}")},
		{"a window of nothing", onePolicy("sliding_window: {limit: 1, window: 0s}")},
		{"a compound window", onePolicy("sliding_window: {limit: 1, window: 1h30m}")},
		{"a window too long", onePolicy("sliding_window: {limit: 1, window_size_micro: 31622400000001}")},
		{"no fail_mode", strings.Replace(onePolicy(), "    fail_mode: fail_closed\n", "", 1)},
		{"an empty fail_mode", onePolicy("fail_mode: ''")},
		{"fail_mode cut short", onePolicy("fail_mode: open")},
		{"fail_mode nowhere near", onePolicy("fail_mode: maybe")},
		{"fail_open without fallback", onePolicy("fail_mode: fail_open")},
		{"fail_closed with fallback", onePolicy("fallback_rate_per_process_micro: 1")},
		{
			"both fallbacks",
			onePolicy("fail_mode: fail_open", "fallback_rate_per_process_micro: 1", "fallback_rate_per_process: 1/s"),
		},
		{"min_cost above max_cost", onePolicy("min_cost: 6", "max_cost: 5")},
		{"min_cost above the capacity", onePolicy("min_cost: 21")},
		{"max_cost above the capacity", onePolicy("max_cost: 21")},
		{"max_cost of nothing", onePolicy("max_cost: 0")},
		{"policy_version of nothing", onePolicy("policy_version: 0")},
		{"policy_version too large", onePolicy("policy_version: 4294967296")},
		{"text where a number is wanted", onePolicy("min_cost: 'one'")},
		{
			"the same descriptor in other words",
			meshFile("[{key: a, value: 'x**y'}]", "[{key: a, value: 'x*y', shared: true}]"),
		},
		{
			"an id twice, in two documents",
			onePolicy() + "---\n" + onePolicy("descriptor: [{key: l}]"),
		},
		{
			"faults on both sides of a syntax error",
			onePolicy("min_cost: -1") + "---\n[\n---\n" + onePolicy("min_cost: -1"),
		},
		{
			"a fault in the second document",
			onePolicy() + "---\n" + strings.Replace(onePolicy("min_cost: -1"), "mesh", "other", 1),
		},
	} {
		set, err := policy.Parse("f.yaml", []byte(tt.content))
		if err == nil || set != nil {
			t.Errorf("%s: Parse = %v, %v, want a fault", tt.name, set, err)
			continue
		}
		fmt.Fprintf(&got, "# %s\n%v\n", tt.name, err)
	}
	compareGolden(t, "testdata/faults.golden", got.String())
}

func TestParse_boundsTheNumberOfFaults(t *testing.T) {
	_, err := policy.Parse("f.yaml", []byte("domain: mesh\npolicies: ["+strings.Repeat("x, ", 500)+"]\n"))
	var faults policy.Faults
	if !errors.As(err, &faults) || len(faults) != 101 {
		t.Fatalf("Parse = %d faults, want 101", len(faults))
	}
	if got, want := faults[100].Text, "and 400 more faults"; got != want {
		t.Errorf("last fault = %q, want %q", got, want)
	}
}

func TestFaults_Unwrap(t *testing.T) {
	_, err := policy.Load("testdata/absent.yaml")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load = %v, want fs.ErrNotExist within", err)
	}
	var fault policy.Fault
	if !errors.As(err, &fault) || fault.File != "testdata/absent.yaml" || fault.Line != 0 {
		t.Errorf("Load = %+v, want a fault of the file without a line", fault)
	}
	if got, want := err.Error(), "testdata/absent.yaml: cannot be read: no such file or directory"; got != want {
		t.Errorf("Error = %q, want %q", got, want)
	}
}
