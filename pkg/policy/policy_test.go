package policy_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/pkg/policy"
)

// parse compiles a file that must have no fault.
func parse(tb testing.TB, content string) *policy.Set {
	tb.Helper()
	set, err := policy.Parse("mesh.yaml", []byte(content))
	if err != nil {
		tb.Fatalf("Parse: %v\n%s", err, content)
	}
	return set
}

// mesh returns the domain of a file with one policy for each descriptor, p0 to pN.
func mesh(tb testing.TB, descriptors ...string) *policy.Domain {
	tb.Helper()
	return parse(tb, meshFile(descriptors...)).Domain("mesh")
}

func meshFile(descriptors ...string) string {
	var b strings.Builder
	b.WriteString("domain: mesh\npolicies:\n")
	for i, d := range descriptors {
		fmt.Fprintf(&b, "  - {endpoint_id: p%d, descriptor: %s, ", i, d)
		b.WriteString("token_bucket: {rate: 10/s}, fail_mode: fail_closed}\n")
	}
	return b.String()
}

// descriptor makes entries from pairs of key and value.
func descriptor(pairs ...string) []policy.Entry {
	var entries []policy.Entry
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, policy.Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return entries
}

func TestPolicy_BucketKey(t *testing.T) {
	d := parse(t, `
domain: mesh
policies:
  - endpoint_id: pdftalk.ingest
    descriptor: [{key: endpoint_id, value: pdftalk.ingest}, {key: tenant}]
    token_bucket: {rate: 10/s}
    fail_mode: fail_closed
    policy_version: 7
`).Domain("mesh")
	key := func(tenant string) string {
		e := descriptor("endpoint_id", "pdftalk.ingest", "tenant", tenant)
		return d.Match(e).BucketKey(e)
	}
	// Computed apart, with sha256sum and base64.
	if got, want := key("acme"), "rl:v1:{c0moEZm_bUv1AUH49U2ONA}:pdftalk.ingest:7"; got != want {
		t.Errorf("BucketKey = %q, want %q", got, want)
	}
	for _, size := range []int{0, 4, 500, 512, 513, 5000} {
		tenant := strings.Repeat("t", size)
		text := "\x00\x00\x00\x00\x00\x00\x00\x04mesh\x00\x00\x00\x00\x00\x00\x00\x06tenant" +
			string(binary.BigEndian.AppendUint64(nil, uint64(size))) + tenant
		sum := sha256.Sum256([]byte(text))
		want := "rl:v1:{" + base64.RawURLEncoding.EncodeToString(sum[:16]) + "}:pdftalk.ingest:7"
		if got := key(tenant); got != want {
			t.Errorf("BucketKey of %d bytes = %q, want %q", size, got, want)
		}
	}
	for _, tenant := range []string{"acme", "secret-tenant", strings.Repeat("x", 100), strings.Repeat("y", 1<<20)} {
		if strings.Contains(key(tenant), tenant) {
			t.Errorf("BucketKey of tenant %.20q contains it", tenant)
		}
	}
}

// A long value takes another way through the hash; there must be no step in between.
func TestPolicy_BucketKey_differsAtEveryLength(t *testing.T) {
	d := mesh(t, "[{key: a}, {key: b}]")
	seen := map[string]int{}
	for n := range 2000 {
		e := descriptor("a", strings.Repeat("v", n), "b", "w")
		key := d.Match(e).BucketKey(e)
		if first, found := seen[key]; found {
			t.Fatalf("BucketKey of %d and %d bytes = %q", first, n, key)
		}
		seen[key] = n
	}
}

func TestPolicy_BucketKey_joinsDoNotCollide(t *testing.T) {
	d := mesh(t, "[{key: x}, {key: y}]", "[{key: x}, {key: y}, {key: z}]")
	keys := map[string]string{}
	long := strings.Repeat("l", 600) // takes the other way through the hash
	for _, values := range [][]string{
		{"a_b", "c"},
		{"a", "b_c"},
		{"ab", ""},
		{"", "ab"},
		{"a", "b"},
		{"a\x00", "b"},
		{"ayb", "c"},
		{"a", "byc"}, // y is the key between them
		{long + "yb", "c"},
		{long, "byc"},
		{"a", "\x00b"},
		{"a", "b", ""},
		{"", "a", "b"},
		{"a\x00\x00\x00\x00\x00\x00\x00\x01y", "b"},
	} {
		var e []policy.Entry
		for i, v := range values {
			e = append(e, policy.Entry{Key: string(rune('x' + i)), Value: v})
		}
		key := d.Match(e).BucketKey(e)
		key = key[:strings.Index(key, "}")] // the endpoint id alone would tell them apart
		if other, found := keys[key]; found {
			t.Errorf("%q and %s have one hash", values, other)
		}
		keys[key] = fmt.Sprintf("%q", values)
	}
}

func TestPolicy_BucketKey_variableEntries(t *testing.T) {
	for _, tt := range []struct {
		name, descriptor string
		equal            bool
	}{
		{"any value has a bucket each", "[{key: k}]", false},
		{"a glob has a bucket for each value", "[{key: k, value: 'a*'}]", false},
		{"a shared any value has one bucket", "[{key: k, shared: true}]", true},
		{"a shared glob has one bucket", "[{key: k, value: 'a*', shared: true}]", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := mesh(t, tt.descriptor)
			one, two := descriptor("k", "a1"), descriptor("k", "a2")
			p := d.Match(one)
			if got := p.BucketKey(one) == p.BucketKey(two); got != tt.equal {
				t.Errorf("keys are equal = %t, want %t", got, tt.equal)
			}
		})
	}
}

// The same identity in another domain, under another endpoint or version, or under another key, is another bucket.
func TestPolicy_BucketKey_separates(t *testing.T) {
	base := onePolicy()
	keys := map[string]string{}
	for name, content := range map[string]string{
		"the base":         base,
		"another domain":   strings.Replace(base, "mesh", "edge", 1),
		"another endpoint": strings.Replace(base, "endpoint_id: x", "endpoint_id: y", 1),
		"another version":  base + "    policy_version: 2\n",
		"another key":      strings.Replace(base, "key: k", "key: l", 1),
	} {
		set := parse(t, content)
		p := set.Domain(set.Domains()[0]).Policies()[0]
		key := p.BucketKey(descriptor(p.Pattern[0].Key(), "v"))
		if other, found := keys[key]; found {
			t.Errorf("%s has the key of %s", name, other)
		}
		keys[key] = name
	}
}

func TestPolicy_BucketKey_changedLimitKeepsBucket(t *testing.T) {
	e := descriptor("k", "v")
	one := mesh(t, "[{key: k}]").Match(e)
	two := parse(t, strings.Replace(meshFile("[{key: k}]"), "10/s", "99/s", 1)).Domain("mesh").Match(e)
	if one.BucketKey(e) != two.BucketKey(e) {
		t.Errorf("BucketKey = %q and %q, want equal", one.BucketKey(e), two.BucketKey(e))
	}
}

func TestPolicy_Cost(t *testing.T) {
	for _, tt := range []struct {
		name, bounds string
		hits         uint64
		want         int64
		ok           bool
	}{
		{"one hit costs one", "", 1, 1, true},
		{"no hit costs one by default", "", 0, 1, true},
		{"no hit is free where that is allowed", "min_cost: 0", 0, 0, true},
		{"few hits are raised", "min_cost: 3", 2, 3, true},
		{"the capacity fits", "", 20, 20, true},
		{"above the capacity", "", 21, 0, false},
		{"the bound fits", "max_cost: 5", 5, 5, true},
		{"above the bound", "max_cost: 5", 6, 0, false},
		{"more than any integer", "", math.MaxUint64, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := parse(t, `
domain: mesh
policies:
  - endpoint_id: x
    descriptor: [{key: k}]
    token_bucket: {rate: 10/s, burst: 20}
    fail_mode: fail_closed
    `+tt.bounds).Domain("mesh").Policies()[0]
			if got, ok := p.Cost(tt.hits); got != tt.want || ok != tt.ok {
				t.Errorf("Cost(%d) = %d, %t, want %d, %t", tt.hits, got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestPolicy_fields(t *testing.T) {
	p := parse(t, `domain: mesh
policies:
  - endpoint_id: resumint.tailor
    descriptor: [{key: endpoint_id, value: resumint.tailor}, {key: path, value: /api/*, shared: true}, {key: tenant}]
    token_bucket: {rate: 100/s, burst: 200}
    fail_mode: fail_open
    fallback_rate_per_process: 5/s
    policy_version: 3
    min_cost: 2
    max_cost: 150
`).Domain("mesh").Policies()[0]
	want := &policy.Policy{
		Endpoint: limit.Endpoint{
			Domain: "mesh", ID: "resumint.tailor", FailMode: limit.FailOpen,
			Fallback: limit.Rate{Micro: 5_000_000, Period: 1_000_000},
		},
		Limit:   limit.NewTokenBucket(200_000_000, limit.Rate{Micro: 100_000_000, Period: 1_000_000}),
		Version: 3, MinCost: 2, MaxCost: 150, File: "mesh.yaml", Line: 3,
	}
	opts := cmp.Options{cmpopts.IgnoreFields(policy.Policy{}, "Pattern"), cmpopts.IgnoreUnexported(policy.Policy{})}
	if diff := cmp.Diff(want, p, opts); diff != "" {
		t.Errorf("Policy (-want +got):\n%s", diff)
	}
	if got, want := p.Pattern.String(), "endpoint_id=resumint.tailor, path=/api/* (shared), tenant=*"; got != want {
		t.Errorf("Pattern = %q, want %q", got, want)
	}
}
