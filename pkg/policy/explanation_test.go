package policy_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDomain_Explain(t *testing.T) {
	d := mesh(t,
		"[{key: e, value: x}, {key: tenant, value: acme}]",
		"[{key: e, value: x}, {key: tenant, value: 'ac*', shared: true}]",
		"[{key: e, value: x}, {key: tenant}]",
		"[{key: e}, {key: tenant}]",
		"[{key: e, value: x}, {key: tenant, value: other}]",
		"[{key: e, value: x}, {key: user}]",
		"[{key: e, value: x}]",
		"[{key: f}]",
	)
	asked := descriptor("e", "x", "tenant", "acme")
	e := d.Explain(asked)
	if e.Policy != d.Match(asked) || e.Policy.Endpoint.ID != "p0" {
		t.Errorf("Policy = %v, want p0", e.Policy.Endpoint.ID)
	}
	var got []string
	for _, m := range e.Misses {
		got = append(got, fmt.Sprintf("%s %v: %v", m.Policy.Endpoint.ID, m.Reason, m))
	}
	want := []string{
		"p1 less_specific: matches, but entry 2 is less specific: tenant=ac* (shared), where p0 has tenant=acme",
		"p2 less_specific: matches, but entry 2 is less specific: tenant=*, where p0 has tenant=acme",
		"p3 less_specific: matches, but entry 1 is less specific: e=*, where p0 has e=x",
		"p4 other_value: entry 2 must be tenant=other",
		`p5 other_key: entry 2 must have the key "user"`,
		"p6 entry_count: wants a descriptor of length 1",
		`p7 other_key: entry 1 must have the key "f"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Misses (-want +got):\n%s", diff)
	}
}

func TestDomain_Explain_nothingMatches(t *testing.T) {
	e := mesh(t, "[{key: a, value: 'b c'}]").Explain(descriptor("a", "x"))
	if e.Policy != nil || len(e.Misses) != 1 {
		t.Fatalf("Explain = %+v, want one miss", e)
	}
	if got, want := e.Misses[0].String(), `entry 1 must be a="b c"`; got != want {
		t.Errorf("Miss = %q, want %q", got, want)
	}
}

func TestDomain_Explain_isBounded(t *testing.T) {
	d, asked := crowd(t, "/api/%d", 500)
	e := d.Explain(asked)
	if e.Policy == nil || len(e.Misses) != 20 || e.Omitted != 479 {
		t.Errorf("Explain = %d misses and %d omitted, want 20 and 479", len(e.Misses), e.Omitted)
	}
}
