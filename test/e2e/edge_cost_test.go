package e2e_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bill is what a client's word on its pages comes to.
type bill struct {
	Status int
	// Charged is what the tenant's bucket lost, in pages.
	Charged int
	// Told is how many pages PDFTalk heard of; "" if it was not called.
	Told string
	// RetryAfter, Cause and Reason are those of a denial.
	RetryAfter, Reason, Cause string
}

// costs are the pages that clients claim, and the bill. Of complete's policy a request may cost 500 at most.
var costs = []struct {
	name   string
	values []string
	want   bill
}{
	{"absent", nil, bill{Status: 200, Charged: 1, Told: "1"}},
	{"one", []string{"1"}, bill{Status: 200, Charged: 1, Told: "1"}},
	{"some", []string{"37"}, bill{Status: 200, Charged: 37, Told: "37"}},
	{"the most", []string{"500"}, bill{Status: 200, Charged: 500, Told: "500"}},
	{"one more than the most", []string{"501"}, tooDear},
	{"more than the bucket holds", []string{"1001"}, tooDear},
	{"as many as Envoy lets through", []string{"999999"}, tooDear},
	{"more than Envoy lets through", []string{"1000000"}, unpriced},
	{"more than an integer holds", []string{"99999999999999999999"}, unpriced},
	{"what wraps around to 1", []string{"18446744073709551617"}, unpriced},
	{"zero", []string{"0"}, unpriced},
	{"zeroes", []string{"000"}, unpriced},
	{"a leading zero", []string{"05"}, unpriced},
	{"negative", []string{"-3"}, unpriced},
	{"negative zero", []string{"-0"}, unpriced},
	{"signed", []string{"+3"}, unpriced},
	{"a fraction", []string{"0.5"}, unpriced},
	{"an exponent", []string{"1e2"}, unpriced},
	{"hexadecimal", []string{"0x10"}, unpriced},
	{"digits of another script", []string{"７"}, unpriced},
	{"not UTF-8", []string{"\xff7"}, unpriced},
	{"junk", []string{"many"}, unpriced},
	{"long junk", []string{strings.Repeat("9", 8000)}, unpriced},
	{"empty", []string{""}, unpriced},
	{"a list", []string{"5,7"}, unpriced},
	{"twice", []string{"5", "7"}, unpriced},
	{"good, then zero", []string{"5", "0"}, unpriced},
	{"zero, then good", []string{"0", "5"}, unpriced},
	{"a substitution", []string{"%REQ(x-evil)%"}, unpriced},
	{"an end of the expression", []string{"') ? '0' : ('"}, unpriced},
}

var (
	// unpriced is a request whose pages cannot be told: it is charged as one page, never as none.
	unpriced = bill{Status: 200, Charged: 1, Told: "1"}
	// tooDear is a request that no amount of waiting makes fit: it is told no time.
	tooDear = bill{Status: 429, Reason: "RATE_LIMITED", Cause: "cost_above_max"}
)

// A request is charged for the pages that PDFTalk is told of, at least one, whatever its client says.
func TestCost(t *testing.T) {
	m := newMesh(t, meshConfig{Policies: complete})
	m.serve(t)
	h2 := &http.Transport{Protocols: new(http.Protocols)}
	h2.Protocols.SetUnencryptedHTTP2(true)
	defer h2.CloseIdleConnections()
	for protocol, transport := range map[string]http.RoundTripper{"HTTP1": nil, "HTTP2": h2} {
		for _, c := range costs {
			t.Run(protocol+"/"+c.name, func(t *testing.T) {
				got := m.billOf(t, pdftalk.path, transport, c.values)
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("bill (-want +got):\n%s", diff)
				}
			})
		}
	}
	m.service.awaitLog(t, line{
		"message": "request denied", "endpoint_id": pdftalk.id, "reason": "RATE_LIMITED", "cause": "cost_above_max",
		"answer": "over_limit",
	})
}

// billOf makes a request of a new tenant between two plain ones, from which it learns what it was charged.
func (m *mesh) billOf(t *testing.T, path string, transport http.RoundTripper, pages []string) bill {
	t.Helper()
	tenant := m.newTenant(t)
	e := errand{Path: path, Headers: m.as(t, tenant), Protocol: transport}
	for _, p := range pages {
		e.Headers = append(e.Headers, "x-pages", p)
	}
	before := m.left(t, tenant)
	got, _ := m.count(t, e)
	told := m.backends[pdftalk.service].Calls().PageHeader
	b := bill{Status: got.Status, Charged: before - m.left(t, tenant) - 1, RetryAfter: got.RetryAfter, Reason: got.Decision}
	if got.Reached {
		b.Told = told
	}
	if got.Status != 200 {
		b.Cause = got.Proof.Cause
	}
	if got.Proof.Endpoint != pdftalk.id || len(got.Counted) != 1 {
		t.Errorf("decided %+v, counted %v, want one decision of %s", got.Proof, got.Counted, pdftalk.id)
	}
	proved.add(got.Counted)
	return b
}

// left makes a request of one page, and returns how many are left.
func (m *mesh) left(t *testing.T, tenant string) int {
	t.Helper()
	got, _, err := m.send(t.Context(), m.newPath(pdftalk), question{Tenant: tenant})
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(got.Limit.Remaining)
	if err != nil || got.Status != 200 {
		t.Fatalf("a plain request comes to %+v", got)
	}
	return n
}

// Pages mean nothing where they are no cost.
func TestCost_OnlyWhereThereIsOne(t *testing.T) {
	m := newMesh(t, meshConfig{Policies: complete})
	m.serve(t)
	tenant := m.newTenant(t)
	for i, pages := range []string{"0", "400", "junk"} {
		got, _ := m.count(t, errand{Path: resumint.path, Headers: m.as(t, tenant, "x-pages", pages)})
		check(t, pages, allowed(resumint, limits{minutely, strconv.Itoa(2 - i), got.Limit.Reset}), got)
	}
}

// Where a cost is not cleaned first, Envoy drops a descriptor whose cost it cannot read, and asks nothing. Such a
// request carries no proof: fail_closed is refused for that, and fail_open metered. A cost of 0 is read, and raised by
// the service to the policy's minimum.
func TestCost_NotCleaned(t *testing.T) {
	m := newMesh(t, meshConfig{Policies: complete, Edits: []edit{
		{`format: "%REQ(x-pages)%"`, `format: "%REQ(x-raw)%"`},
		{
			"      - metadata: *tenant\n",
			"      - metadata: *tenant\n                      hits_addend: {format: \"%REQ(x-raw)%\"}\n",
		},
	}})
	m.serve(t)
	for _, raw := range []string{"", "junk", "-1", "99999999999999999999", "1000000001"} {
		t.Run("unreadable "+raw, func(t *testing.T) { m.testUnread(t, raw) })
	}
	for raw, want := range map[string]int{"0": 1, "1": 1, "1.5": 1, "12": 12} {
		t.Run("readable "+raw, func(t *testing.T) {
			tenant := m.newTenant(t)
			got, _ := m.count(t, errand{Path: pdftalk.path, Headers: m.as(t, tenant, "x-raw", raw)})
			check(t, "fail_closed", allowed(pdftalk, limits{hourly, strconv.Itoa(1000 - want), got.Limit.Reset}), got)
		})
	}
}

func (m *mesh) testUnread(t *testing.T, raw string) {
	headers := m.as(t, m.newTenant(t))
	if raw != "" {
		headers = append(headers, "x-raw", raw)
	}
	asked := m.stat(t, questions)
	got, where := m.count(t, errand{Path: pdftalk.path, Headers: headers})
	check(t, "fail_closed", seen{
		Status: 403, Body: `{"detail": "request carries no rate limit identity"}`, ContentType: "application/json",
		Proof: proof{none, none, none}, Counted: counts{},
	}, got)
	if !strings.HasPrefix(where.Details, "rbac_access_denied") {
		t.Errorf("the access log says %+v", where)
	}
	passes, metered := 0, 0
	for metered == 0 {
		got, _ := m.count(t, errand{Path: resumint.path, Headers: headers})
		want := passedUndecided(resumint)
		if got.Status == 429 {
			metered++
			want = meteredUndecided()
		} else {
			passes++
		}
		want.Counted = counts{}
		check(t, "fail_open", want, got)
		if t.Failed() || passes > 100 {
			t.Fatalf("%d requests passed, none was metered", passes)
		}
	}
	if got := m.stat(t, questions); got != asked {
		t.Errorf("Envoy asked %d times", got-asked)
	}
}
