package e2e_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/redistest"
)

// tight is a policy file whose limits are reached at once, with numbers that come out whole.
const tight = `
domain: mesh
policies:
  - endpoint_id: pdftalk.ingest
    descriptor: [{key: endpoint_id, value: pdftalk.ingest}, {key: tenant}]
    sliding_window: {limit: 20, window: 60s}
    fail_mode: fail_closed
  - endpoint_id: resumint.tailor
    descriptor: [{key: endpoint_id, value: resumint.tailor}, {key: tenant}]
    token_bucket: {rate: 1/min, burst: 3}
    fail_mode: fail_open
    fallback_rate_per_process: 1/min
`

// allowed is a request that the store admits; the service tells what is left.
func allowed(e endpoint, l limits) seen {
	return seen{
		Status: 200, Body: e.body, ContentType: "application/json", Reached: true, Limit: l,
		Proof:   proof{"ALLOWED", "none", e.id},
		Counted: counts{decided(e.id, "ALLOWED", "none", "ok"): 1},
	}
}

// limited is a request that the store denies.
func limited(e endpoint, cause, retryAfter string, l limits) seen {
	return seen{
		Status: 429, Body: bodyLimited, ContentType: "application/json", Limit: l,
		RetryAfter: retryAfter, Decision: "RATE_LIMITED", Limited: "true",
		Proof:   proof{"RATE_LIMITED", cause, e.id},
		Counted: counts{decided(e.id, "RATE_LIMITED", cause, "over_limit"): 1},
	}
}

// step is a request and what it must come to in the second in which the first one of its bucket was made.
type step struct {
	what  string
	pages int64
	want  seen
}

var (
	// 20 pages in 60 s. After all 20 the first of them leaves room for one when a twentieth of the next window has
	// passed: 63 s. The bucket is as new after two windows.
	pdftalkSteps = []step{
		{"the first page", 1, allowed(pdftalk, limits{window, "19", "120"})},
		{"all other pages", 19, withPages(allowed(pdftalk, limits{window, "0", "120"}), 19)},
		{"one too many", 1, limited(pdftalk, "none", "63", limits{window, "0", "120"})},
		{"more than there ever will be", 21, limited(pdftalk, "cost_above_max", "", limits{})},
	}
	// A bucket of 3 that regains one a minute.
	resumintSteps = []step{
		{"the first", 0, allowed(resumint, limits{bucket, "2", "60"})},
		{"the second", 0, allowed(resumint, limits{bucket, "1", "120"})},
		{"the third", 0, allowed(resumint, limits{bucket, "0", "180"})},
		{"the fourth", 0, limited(resumint, "none", "60", limits{bucket, "0", "180"})},
	}
)

const (
	window = `20, 20;w=60;name="pdftalk.ingest"`
	bucket = `3, 3;w=180;name="resumint.tailor"`
)

func withPages(s seen, pages int) seen {
	s.Body = strings.Replace(s.Body, "1 page", strconv.Itoa(pages)+" page", 1)
	return s
}

// The store decides: it admits, counts down, denies with the time to wait, and knows one tenant from another.
func TestSuccess(t *testing.T) {
	m := newMesh(t, meshConfig{Policies: tight})
	st := newStore(t, m.secrets)
	s := m.serve(t, st.at(st.URL())...)
	m.awaitHealthy(t)
	for _, tenant := range []string{m.newTenant(t), m.newTenant(t)} {
		m.checkSteps(t, pdftalk, tenant, pdftalkSteps)
		m.checkSteps(t, resumint, tenant, resumintSteps)
	}
	s.awaitLog(t, line{"message": "request denied", "endpoint_id": pdftalk.id, "reason": "RATE_LIMITED"})
	s.awaitLog(t, line{"message": "request denied", "endpoint_id": resumint.id, "reason": "RATE_LIMITED"})
	ctx, cancel := deadline(t)
	defer cancel()
	keys, err := st.admin.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	m.secrets.search(t, "the store's keys", strings.Join(keys, "\n"))
}

func (m *mesh) checkSteps(t *testing.T, e endpoint, tenant string, steps []step) {
	t.Helper()
	start := time.Now()
	for _, st := range steps {
		got := m.watch(t, e, question{Tenant: tenant, Pages: st.pages})
		// A machine that needs whole seconds for this sees times that are so much shorter.
		passed := int(time.Since(start) / time.Second)
		got.RetryAfter = addSeconds(got.RetryAfter, st.want.RetryAfter, passed)
		got.Limit.Reset = addSeconds(got.Limit.Reset, st.want.Limit.Reset, passed)
		check(t, e.id+": "+st.what, st.want, got)
	}
}

// addSeconds returns want if got is want or up to passed less, else got.
func addSeconds(got, want string, passed int) string {
	g, err1 := strconv.Atoi(got)
	w, err2 := strconv.Atoi(want)
	if err1 == nil && err2 == nil && g <= w && g >= w-passed {
		return want
	}
	return got
}

// A descriptor that no policy governs passes, counted, and with the proof that Envoy's last filter demands.
func TestUnmatched(t *testing.T) {
	m := newMesh(t, meshConfig{Policies: tight})
	m.serve(t)
	check(t, "a route without a policy", seen{
		Status: 200, Body: forgotten.body, ContentType: "application/json", Reached: true,
		Proof:   proof{"ALLOWED", "unmatched", none},
		Counted: counts{unmatchedTotal + `{domain="mesh"}`: 1},
	}, m.watch(t, forgotten, question{}))
}

// The embedded store decides as Redis does.
func TestEmbeddedStore(t *testing.T) {
	m := newMesh(t, meshConfig{Policies: tight, Patience: productPatience})
	m.serve(t)
	m.checkSteps(t, pdftalk, m.newTenant(t), pdftalkSteps)
	m.checkSteps(t, resumint, m.newTenant(t), resumintSteps)
}

// The policy file of the trial, as it stands, with envoy.yaml as it stands.
func TestProduct(t *testing.T) {
	text, err := os.ReadFile("../../envoy/policies/mesh.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := newMesh(t, meshConfig{Policies: string(text), Patience: productPatience})
	st := newStore(t, m.secrets)
	m.serve(t, st.at(st.URL())...)
	for _, e := range []endpoint{pdftalk, resumint, forgotten} {
		m.awaitAllowed(t, e)
		redistest.Eventually(t, e.path+" to be limited", func() bool {
			got := m.ask(t, e, question{})
			return got.Status == 429 && got.Proof.Decision == "RATE_LIMITED" && !got.Reached
		})
	}
	for _, e := range endpoints {
		if got := m.ask(t, e, question{Tenant: m.newTenant(t)}); got.Status != 200 {
			t.Errorf("%s: another tenant is answered %d, want 200", e.id, got.Status)
		}
	}
}
