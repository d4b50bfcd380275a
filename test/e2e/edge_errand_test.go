package e2e_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/redistest"
)

// errand is a request of which the client decides everything. A question (answer_test.go) is always an honest one.
type errand struct {
	// Path goes over the wire as it is written, but for a number at its end, by which the access log is searched.
	Path string
	// Headers are names and values in turn. None is added, and so no token.
	Headers []string
	// Protocol is that of the request; default HTTP/1.1.
	Protocol http.RoundTripper
}

// route is where Envoy sent a request, and what it has to say of the answer, as the access log shows it.
type route struct{ Name, Flags, Details string }

// run is ask for an errand. Reached is whether any backend was called. It returns the header, too, for those that
// seen has no field for.
func (m *mesh) run(t *testing.T, e errand) (seen, route, http.Header) {
	t.Helper()
	before := m.calls()
	mark := m.newMark()
	got, header, took, err := e.send(t.Context(), m.edge, mark)
	if err != nil {
		t.Fatalf("%s: %v", e.Path, err)
	}
	if took > atMost {
		t.Errorf("%s was answered after %v, want within %v", e.Path, took, atMost)
	}
	got.Reached = m.calls() > before
	var where route
	got.Proof, where = m.traceOf(t, mark)
	return got, where, header
}

// newMark is the end of a path that no other request has.
func (m *mesh) newMark() string { return "/" + strconv.FormatInt(m.asked.Add(1), 10) }

// count is run that also tells what the service counted.
func (m *mesh) count(t *testing.T, e errand) (seen, route) {
	t.Helper()
	before := m.service.metrics(t)
	got, where, _ := m.run(t, e)
	got.Counted = m.service.metrics(t).since(before, decisionsTotal, emergencyTotal, unmatchedTotal)
	return got, where
}

// calls is how many requests have reached a backend.
func (m *mesh) calls() int64 {
	var n int64
	for _, b := range m.backends {
		n += b.Calls().Requests
	}
	return n
}

// as are the headers of a request by a tenant, and what else it has.
func (m *mesh) as(t *testing.T, tenant string, headers ...string) []string {
	t.Helper()
	bearer, err := m.bearer(tenant)
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"authorization", "Bearer " + bearer}, headers...)
}

func (e errand) send(ctx context.Context, edge, mark string) (seen, http.Header, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, redistest.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, edge, http.NoBody)
	if err != nil {
		return seen{}, nil, 0, err
	}
	// The path as it is: url.Parse would take the // at its start for a host, and Path would be escaped anew.
	path, query, _ := strings.Cut(e.Path, "?")
	req.URL = &url.URL{Scheme: "http", Host: req.URL.Host, Opaque: opaque(req.URL.Host, path+mark), RawQuery: query}
	for i := 0; i < len(e.Headers); i += 2 {
		req.Header.Add(e.Headers[i], e.Headers[i+1])
	}
	c := *client
	if e.Protocol != nil {
		c.Transport = e.Protocol
	}
	start := time.Now()
	resp, err := c.Do(req)
	if err != nil {
		return seen{}, nil, 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	took := time.Since(start)
	h := resp.Header
	return seen{
		Status: resp.StatusCode, Body: string(body), ContentType: h.Get("content-type"),
		RetryAfter: h.Get("retry-after"),
		Limit:      limits{h.Get("x-ratelimit-limit"), h.Get("x-ratelimit-remaining"), h.Get("x-ratelimit-reset")},
		Decision:   h.Get("x-ratelimit-decision"), Limited: h.Get("x-envoy-ratelimited"),
	}, h, took, err
}

// opaque is how net/url writes a request for path that nothing may touch.
func opaque(host, path string) string {
	if strings.HasPrefix(path, "//") {
		return "//" + host + path // without the host it would be taken for one
	}
	return path
}

// traceOf waits for the line of the access log whose path ends with mark.
func (m *mesh) traceOf(t *testing.T, mark string) (p proof, r route) {
	t.Helper()
	redistest.Eventually(t, "the access log to tell of the request "+mark, func() bool {
		for l := range strings.Lines(m.accessLog.text()) {
			if before, rest, ok := strings.Cut(l, mark+" "); ok && strings.HasSuffix(l, "\n") {
				_, path, _ := strings.Cut(strings.TrimSpace(before), " ")
				p, _ = parseProof(" "+path+mark+" "+rest, path+mark)
				r = parseRoute(rest)
				return true
			}
		}
		return false
	})
	return p, r
}

func parseRoute(text string) route {
	words := map[string]string{}
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		words[name] = value
	}
	return route{Name: words["route"], Flags: words["flags"], Details: words["details"]}
}

// stat is a counter or gauge of Envoy; 0 if there is none of that name yet.
func (m *mesh) stat(t *testing.T, name string) int {
	t.Helper()
	for l := range strings.Lines(fetch(t, m.admin+"/stats?filter="+url.QueryEscape("^"+name+"$"))) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(l), name+": "); ok {
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatalf("Envoy's %s is %q, want a number", name, value)
			}
			return n
		}
	}
	return 0
}
