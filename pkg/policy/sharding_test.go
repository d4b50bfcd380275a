package policy_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/pkg/policy"
)

// sharded returns the domain of meshFile with shard_by.
func sharded(tb testing.TB, shardBy string, descriptors ...string) *policy.Domain {
	tb.Helper()
	return parse(tb, shardedFile(shardBy, descriptors...)).Domain("mesh")
}

func shardedFile(shardBy string, descriptors ...string) string {
	return strings.Replace(meshFile(descriptors...), "policies:", "shard_by: "+shardBy+"\npolicies:", 1)
}

// keyOf is the key of the bucket that d charges for the descriptor, which a policy must govern.
func keyOf(tb testing.TB, d *policy.Domain, pairs ...string) string {
	tb.Helper()
	asked := descriptor(pairs...)
	p := d.Match(asked)
	if p == nil {
		tb.Fatalf("no policy governs %q", asked)
	}
	return p.BucketKey(asked)
}

// tagOf is what a Redis Cluster takes the slot from: the text between the first brace and the next closing one.
func tagOf(key string) string {
	_, tag, _ := strings.Cut(key, "{")
	tag, _, _ = strings.Cut(tag, "}")
	return tag
}

// hashOf is the documented hash over texts, made without the code that is tested.
func hashOf(texts ...string) string {
	var all []byte
	for _, text := range texts {
		all = append(binary.BigEndian.AppendUint64(all, uint64(len(text))), text...)
	}
	sum := sha256.Sum256(all)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

func TestPolicy_BucketKey_sharded(t *testing.T) {
	long := strings.Repeat("l", 600) // takes the other way through the hash
	for _, tt := range []struct {
		name, shardBy, descriptor string
		asked                     []string
		want                      string // without what every key begins with
	}{
		{
			"only the named entry tells buckets apart", "[t]", "[{key: e, value: x}, {key: t}]",
			[]string{"e", "x", "t", "acme"},
			"{" + hashOf("mesh", "t", "acme") + "}:p0:1",
		},
		{
			"another entry does too", "[t]", "[{key: t}, {key: path}]",
			[]string{"t", "acme", "path", "/a"},
			"{" + hashOf("mesh", "t", "acme") + "}" + hashOf("mesh", "path", "/a") + ":p0:1",
		},
		{
			"long values", "[t]", "[{key: t}, {key: path}]",
			[]string{"t", long, "path", long},
			"{" + hashOf("mesh", "t", long) + "}" + hashOf("mesh", "path", long) + ":p0:1",
		},
		{
			"the order of the descriptor has no meaning", "[r, t]", "[{key: t}, {key: path}, {key: r}]",
			[]string{"t", "acme", "path", "/a", "r", "eu"},
			"{" + hashOf("mesh", "r", "eu", "t", "acme") + "}" + hashOf("mesh", "path", "/a") + ":p0:1",
		},
		{
			"an exact value", "[t]", `[{key: t, value: 'a\*'}]`,
			[]string{"t", "a*"},
			"{" + hashOf("mesh", "t", "a*") + "}:p0:1",
		},
		{
			"an exact value before an entry that varies", "[t]", "[{key: t, value: acme}, {key: path}]",
			[]string{"t", "acme", "path", "/a"},
			"{" + hashOf("mesh", "t", "acme") + "}" + hashOf("mesh", "path", "/a") + ":p0:1",
		},
		{
			"a glob", "[t]", "[{key: t, value: 'ac*'}]",
			[]string{"t", "acme"},
			"{" + hashOf("mesh", "t", "acme") + "}:p0:1",
		},
		{
			"the first of two entries with one key", "[t]", "[{key: t}, {key: t}]",
			[]string{"t", "acme", "t", "globex"},
			"{" + hashOf("mesh", "t", "acme") + "}" + hashOf("mesh", "t", "globex") + ":p0:1",
		},
		{
			"a shared entry beside", "[t]", "[{key: t}, {key: path, shared: true}]",
			[]string{"t", "acme", "path", "/a"},
			"{" + hashOf("mesh", "t", "acme") + "}:p0:1",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := sharded(t, tt.shardBy, tt.descriptor)
			if got, want := keyOf(t, d, tt.asked...), "rl:v1:"+tt.want; got != want {
				t.Errorf("BucketKey = %q, want %q", got, want)
			}
			if apart := d.Policies()[0].Apart(); apart != "" {
				t.Errorf("Apart = %q, want nothing", apart)
			}
		})
	}
}

// What shard_by is for: the buckets of one request, which its descriptors agree about, have one slot.
func TestPolicy_BucketKey_shardedBucketsOfOneRequest(t *testing.T) {
	d := sharded(t, "[tenant]", "[{key: e, value: x}, {key: tenant}]", "[{key: tenant}, {key: user}]",
		"[{key: tenant, value: acme}, {key: path, value: '/a/*'}]", "[{key: tenant, value: acme}]")
	of := func(tenant string) []string {
		return []string{
			keyOf(t, d, "e", "x", "tenant", tenant), keyOf(t, d, "tenant", tenant, "user", "u1"),
			keyOf(t, d, "tenant", tenant, "user", "u2"),
		}
	}
	acme := append(of("acme"), keyOf(t, d, "tenant", "acme", "path", "/a/b"), keyOf(t, d, "tenant", "acme"))
	for i, key := range acme {
		if tagOf(key) != tagOf(acme[0]) {
			t.Errorf("key %d is %q, want the tag of %q", i, key, acme[0])
		}
		if slices.Contains(acme[:i], key) {
			t.Errorf("key %d is %q, which another bucket has", i, key)
		}
	}
	if globex := of("globex"); tagOf(globex[0]) == tagOf(acme[0]) {
		t.Errorf("%q and %q have one tag, want one for each tenant", globex[0], acme[0])
	}
}

// A bucket that many values of a named entry share, or that has none of them, must not follow a request's slot: it
// would be several buckets. It stays where it was.
func TestPolicy_Apart(t *testing.T) {
	for _, tt := range []struct{ name, descriptor, want string }{
		{"an entry is missing", "[{key: t}, {key: path}]", `its descriptor has no entry "r"`},
		{"all are missing", "[{key: path}]", `its descriptor has no entry "r"`},
		{
			"an entry is shared", "[{key: t, shared: true}, {key: r}]",
			`all values of its entry "t" share one bucket`,
		},
		{
			"a glob is shared", "[{key: r, value: 'v*', shared: true}, {key: t}]",
			`all values of its entry "r" share one bucket`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// A second policy has the keys that the first may not have.
			all := []string{tt.descriptor, "[{key: e, value: x}, {key: t}, {key: r}]"}
			d, plain := sharded(t, "[t, r]", all...), mesh(t, all...)
			p := d.Policies()[0]
			if got := p.Apart(); got != tt.want {
				t.Errorf("Apart = %q, want %q", got, tt.want)
			}
			if got := plain.Policies()[0].Apart(); got != "" {
				t.Errorf("Apart = %q without shard_by, want nothing", got)
			}
			var asked []string
			for _, m := range p.Pattern {
				asked = append(asked, m.Key(), "v1")
			}
			if got, want := keyOf(t, d, asked...), keyOf(t, plain, asked...); got != want {
				t.Errorf("BucketKey = %q, want %q as without shard_by", got, want)
			}
		})
	}
}

// identity is what has a bucket of its own, written so that nothing can be mistaken for anything else.
func identity(p *policy.Policy, asked []policy.Entry) string {
	var varying []string
	for i, m := range p.Pattern {
		if isVariable(m) {
			varying = append(varying, fmt.Sprintf("%d:%q", i, asked[i].Value))
		}
	}
	return fmt.Sprintf("%q %q %q", p.Endpoint.Domain, p.Endpoint.ID, varying)
}

// isVariable tells whether the values of an entry tell buckets apart: there is a wildcard, and it is not shared.
func isVariable(m policy.Matcher) bool { return strings.Contains(m.String(), "*") && !m.Shared() }

// slotIdentity is what has a slot of its own in a domain that is sharded by keys.
func slotIdentity(p *policy.Policy, keys []string, asked []policy.Entry) string {
	named := []string{p.Endpoint.Domain}
	for _, key := range keys {
		i := slices.IndexFunc(asked, func(e policy.Entry) bool { return e.Key == key })
		named = append(named, key, asked[i].Value)
	}
	return fmt.Sprintf("%q", named)
}

// oneToOne reports two values with one key, and one value with two keys.
type oneToOne struct{ values, keys map[string]string }

func newOneToOne() oneToOne { return oneToOne{map[string]string{}, map[string]string{}} }

func (o oneToOne) check(t *testing.T, value, key string) {
	t.Helper()
	if other, found := o.values[key]; found && other != value {
		t.Errorf("%s and %s both have %q", other, value, key)
	}
	if other, found := o.keys[value]; found && other != key {
		t.Errorf("%s has %q and %q", value, other, key)
	}
	o.values[key], o.keys[value] = value, key
}

// Whatever domains, keys, values and shard_by there are: each bucket has one key, no two have the same, and they share
// a slot where the named entries agree.
func TestPolicy_BucketKey_shardedIsOneToOne(t *testing.T) {
	r := random{rand.New(rand.NewPCG(2, uint64(time.Now().UnixNano())))}
	shardings := [][]string{{"k"}, {"l"}, {"k", "l"}}
	for _, keys := range shardings {
		buckets, slots := newOneToOne(), newOneToOne()
		for _, name := range []string{"mesh", "m", "meshk"} {
			d := r.shardedDomain(t, name, keys)
			for range 2000 {
				asked := r.entries("ab")
				p := d.Match(asked)
				if p == nil {
					continue
				}
				key := p.BucketKey(asked)
				buckets.check(t, identity(p, asked), key)
				if p.Apart() == "" {
					slots.check(t, slotIdentity(p, keys, asked), tagOf(key))
				}
			}
		}
		if len(buckets.keys) < 100 || len(slots.keys) < 20 {
			t.Errorf("shard_by %v: only %d buckets and %d slots were seen", keys, len(buckets.keys), len(slots.keys))
		}
	}
}

// shardedDomain has a policy for every number and order of keys, and random ones besides, some of which are shared.
func (r random) shardedDomain(t *testing.T, name string, keys []string) *policy.Domain {
	t.Helper()
	all := []string{
		"[{key: k}]", "[{key: l}]", "[{key: k}, {key: k}]", "[{key: k}, {key: l}]", "[{key: l}, {key: k}]",
		"[{key: k}, {key: k}, {key: l}]", "[{key: l}, {key: k}, {key: k}]",
	}
	for _, ref := range r.references() {
		all = append(all, strings.ReplaceAll(ref.String(), `"*"}`, `"*", shared: true}`))
	}
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(d string) bool {
		same := strings.NewReplacer(`, value: "*"`, "", ", shared: true", "").Replace(d)
		defer func() { seen[same] = true }()
		return seen[same]
	})
	file := strings.Replace(shardedFile("["+strings.Join(keys, ", ")+"]", all...), "mesh", name, 1)
	return parse(t, file).Domain(name)
}

func TestPolicy_BucketKey_shardedAllocatesTheKeyOnly(t *testing.T) {
	d := sharded(t, "[tenant]", "[{key: tenant}, {key: path}]")
	for _, size := range []int{8, 500, 5000} {
		asked := descriptor("tenant", strings.Repeat("x", size), "path", strings.Repeat("y", size))
		p := d.Match(asked)
		if allocs := testing.AllocsPerRun(100, func() { p.BucketKey(asked) }); allocs != 1 {
			t.Errorf("BucketKey of %d bytes allocates %v times, want 1", size, allocs)
		}
	}
}

func TestDomain_ShardBy(t *testing.T) {
	one, two := "[{key: a}, {key: b}]", "[{key: b}, {key: a}]"
	plain := parse(t, meshFile(one, two))
	if got := plain.Domain("mesh").ShardBy(); got != nil {
		t.Errorf("ShardBy = %q without the field, want none", got)
	}
	ab := parse(t, shardedFile("[a, b]", one, two))
	if diff := cmp.Diff([]string{"a", "b"}, ab.Domain("mesh").ShardBy()); diff != "" {
		t.Errorf("ShardBy (-want +got):\n%s", diff)
	}
	parts := strings.SplitAfter(meshFile(one, two), "fail_closed}\n")
	spread := "domain: mesh\nshard_by: [b, a]\npolicies:\n" + parts[1] + "---\n" + parts[0] + "---\n" +
		strings.Replace(shardedFile("[a, b]", "[{key: c}]"), "p0", "p2", 1)
	other := parse(t, strings.Replace(spread, "[b, a]", "[a, b]", 1))
	if got := parse(t, spread); got.Version() != other.Version() {
		t.Errorf("Version = %s and %s, want the order of keys to have no meaning", got.Version(), other.Version())
	}
	versions := map[string]string{}
	for name, set := range map[string]*policy.Set{
		"none": plain, "both": ab, "one": parse(t, shardedFile("[a]", one, two)),
		"the other": parse(t, shardedFile("[b]", one, two)),
	} {
		if same, found := versions[set.Version()]; found {
			t.Errorf("shard_by of %s has the version of %s", name, same)
		}
		versions[set.Version()] = name
	}
}
