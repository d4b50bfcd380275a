package e2e_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// What the service exports is what Prometheus calls well-formed, every label holds one of a few words known beforehand,
// and more tenants make no more series.
func TestMetrics(t *testing.T) {
	m := newMesh(t, meshConfig{Policies: complete})
	st := newStore(t, m.secrets)
	s := m.serve(t, append(st.at(st.URL()), neverOpens)...)
	m.awaitAllowed(t, resumint)
	visit := func() {
		tenant := m.newTenant(t)
		for _, e := range []endpoint{pdftalk, resumint, metered} {
			m.count(t, m.by(t, e, tenant))
		}
		m.count(t, errand{Path: pdftalk.path, Headers: m.as(t, tenant, "x-pages", "501")})
	}
	visit()
	st.Kill()
	m.awaitCause(t, "dial")
	visit() // admitted by the emergency limiter
	visit() // denied by it
	before := len(s.metrics(t))
	for range 5 {
		visit()
	}
	if got := len(s.metrics(t)); got != before {
		t.Errorf("5 more tenants make %d series of %d", got, before)
	}
	page := fetch(t, s.admin+"/metrics")
	problems, err := promlint.New(strings.NewReader(page)).Lint()
	if err != nil {
		t.Fatalf("the page does not parse: %v", err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	checkLabels(t, page)
}

var labelled = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)

// checkLabels checks every label on the page against what it may hold.
func checkLabels(t *testing.T, page string) {
	t.Helper()
	word := regexp.MustCompile(`^[a-z_]*$`)
	number := regexp.MustCompile(`^(\+Inf|[0-9.e+-]+)$`)
	may := map[string]*regexp.Regexp{
		"domain": regexp.MustCompile(`^(mesh|other)$`), "endpoint_id": regexp.MustCompile(`^(pdftalk\.ingest|resumint\.tailor|default)$`),
		"reason": regexp.MustCompile(`^(` + strings.Join(reasonNames(), "|") + `)$`),
		"cause":  regexp.MustCompile(`^(` + strings.Join(causeNames(), "|") + `)$`),
		"answer": regexp.MustCompile(`^(ok|over_limit|unavailable)$`), "result": regexp.MustCompile(`^(admitted|denied|hit|kept|evicted)$`),
		"from": word, "to": word, "state": word, "why": word, "outcome": word, "le": number, "quantile": number,
		"code": regexp.MustCompile(`^[A-Za-z]+$`), "version": regexp.MustCompile(`^(go[0-9.]+|[0-9a-f]{12}|\(devel\)|v[0-9].*)$`),
		"revision": regexp.MustCompile(`^[0-9a-z]*$`), "go_version": regexp.MustCompile(`^go[0-9.]+`),
	}
	seen := 0
	for l := range strings.Lines(page) {
		if strings.HasPrefix(l, "#") {
			continue
		}
		for _, label := range labelled.FindAllStringSubmatch(l, -1) {
			seen++
			if allowed := may[label[1]]; allowed == nil || !allowed.MatchString(label[2]) {
				t.Errorf("label %s holds %q: %s", label[1], label[2], l)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d labels were looked at", seen)
	}
}

func reasonNames() []string {
	return []string{"ALLOWED", "RATE_LIMITED", timeout, connection, noScript, failClosed, circuit, emergencyLimit}
}

func causeNames() []string {
	var names []string
	for _, c := range failure.Causes() {
		names = append(names, c.String())
	}
	return names
}
