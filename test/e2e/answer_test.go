package e2e_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/redistest"
)

// atMost bounds every single request that these tests make. The budget of the store is 20 ms and the rest takes about
// one; the margin is for a machine that is busy with something else. A request that waited for a socket, a dial or a
// full retry would take longer than this.
const atMost = 500 * time.Millisecond

// endpoint is a protected service, as a client, the service and the backend know it.
type endpoint struct {
	id      string // endpoint_id of its policy
	service string // what its backend calls itself
	path    string
	body    string // what its backend answers to a request of one page
}

var (
	// pdftalk fails closed.
	pdftalk = endpoint{
		id: "pdftalk.ingest", service: "pdftalk", path: "/pdftalk/ingest",
		body: `{"result":"read 1 page(s)","service":"pdftalk"}` + "\n",
	}
	// resumint fails open.
	resumint = endpoint{
		id: "resumint.tailor", service: "resumint", path: "/resumint/tailor",
		body: `{"result":"tailored the résumé","service":"resumint"}` + "\n",
	}
	endpoints = []endpoint{pdftalk, resumint}
	// forgotten is a route that nobody gave a limit, and of whose descriptor the tests' policies know nothing: the
	// service decides it without its store.
	forgotten = endpoint{id: "", service: "resumint", path: "/forgotten", body: resumint.body}
)

// question is a request. The zero value is made for the mesh's own tenant, of one page.
type question struct {
	Tenant string
	Pages  int64
}

// seen is everything that can be seen of one request from outside.
type seen struct {
	Status      int
	Body        string
	ContentType string
	RetryAfter  string // "" where there is no such header, as with all headers here
	Limit       limits
	Decision    string // x-ratelimit-decision
	Limited     string // x-envoy-ratelimited
	Reached     bool   // the backend was called
	Proof       proof
	Counted     counts // what the service's counters gained
}

// limits are the x-ratelimit-* headers.
type limits struct{ Limit, Remaining, Reset string }

// proof is the dynamic metadata of the service's answer, as the access log shows it. An answer that is a gRPC error has
// none.
type proof struct{ Decision, Cause, Endpoint string }

// none is how the access log writes metadata that is not there.
const none = "-"

// Bodies of the answers that Envoy words.
const (
	bodyLimited     = `{"detail": "rate limit exceeded"}`
	bodyUnavailable = `{"detail": "rate limiter unavailable"}`
)

// ask makes one request that nobody else's disturbs, and returns what is seen of it but for the counters.
func (m *mesh) ask(t *testing.T, e endpoint, q question) seen {
	t.Helper()
	before := m.backends[e.service].Calls().Requests
	path := m.newPath(e)
	got, took, err := m.send(t.Context(), path, q)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if took > atMost {
		t.Errorf("%s was answered after %v, want within %v", path, took, atMost)
	}
	got.Reached = m.backends[e.service].Calls().Requests > before
	got.Proof = m.proofOf(t, path)
	return got
}

// watch is ask that also tells what the service counted.
func (m *mesh) watch(t *testing.T, e endpoint, q question) seen {
	t.Helper()
	before := m.service.metrics(t)
	got := m.ask(t, e, q)
	got.Counted = m.service.metrics(t).since(before, decisionsTotal, emergencyTotal, unmatchedTotal)
	return got
}

// newPath is a path of the endpoint that no other request has.
func (m *mesh) newPath(e endpoint) string {
	return e.path + "/" + strconv.FormatInt(m.asked.Add(1), 10)
}

// send makes a request and returns what its client sees, and how long that took.
func (m *mesh) send(ctx context.Context, path string, q question) (got seen, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, redistest.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.edge+path, strings.NewReader("{}"))
	if err != nil {
		return seen{}, 0, err
	}
	if err := m.dress(req, q); err != nil {
		return seen{}, 0, err
	}
	start := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return seen{}, 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	took = time.Since(start)
	h := resp.Header
	return seen{
		Status: resp.StatusCode, Body: string(body), ContentType: h.Get("content-type"),
		RetryAfter: h.Get("retry-after"),
		Limit:      limits{h.Get("x-ratelimit-limit"), h.Get("x-ratelimit-remaining"), h.Get("x-ratelimit-reset")},
		Decision:   h.Get("x-ratelimit-decision"), Limited: h.Get("x-envoy-ratelimited"),
	}, took, err
}

// client keeps a connection for each request of a crowd.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512}}

func (m *mesh) dress(req *http.Request, q question) error {
	if q.Tenant == "" {
		q.Tenant = m.tenant
	}
	bearer, err := m.bearer(q.Tenant)
	if err != nil {
		return err
	}
	req.Header.Set("authorization", "Bearer "+bearer)
	if q.Pages > 0 {
		req.Header.Set("x-pages", strconv.FormatInt(q.Pages, 10))
	}
	return nil
}

// proofOf waits for the request's line in the access log.
func (m *mesh) proofOf(t *testing.T, path string) proof {
	t.Helper()
	var p proof
	redistest.Eventually(t, "the access log to tell of "+path, func() bool {
		var err error
		p, err = parseProof(m.accessLog.text(), path)
		return err == nil
	})
	return p
}

var errNoLine = errors.New("no such line")

func parseProof(log, path string) (proof, error) {
	_, rest, ok := strings.Cut(log, " "+path+" ")
	text, _, complete := strings.Cut(rest, "\n")
	if !ok || !complete {
		return proof{}, errNoLine
	}
	var p proof
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "decision":
			p.Decision = value
		case "cause":
			p.Cause = value
		case "endpoint":
			p.Endpoint = value
		}
	}
	return p, nil
}

// check compares, and notes in the ledger what the request has proved.
func check(t *testing.T, what string, want, got seen) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
		return
	}
	proved.add(want.Counted)
}

// admittedWithoutStore is a fail_open request that the emergency limiter lets pass: no number is invented.
func admittedWithoutStore(e endpoint, reason, cause string) seen {
	return seen{
		Status: 200, Body: e.body, ContentType: "application/json", Reached: true,
		Proof: proof{reason, cause, e.id},
		Counted: counts{
			decided(e.id, reason, cause, "ok"): 1,
			emergency(e.id, "admitted"):        1,
		},
	}
}

// unavailable is a fail_closed request that nobody decides. The service answers with a gRPC error, of which Envoy keeps
// nothing: body and Retry-After are envoy.yaml's.
func unavailable(e endpoint, reason, cause string) seen {
	return seen{
		Status: 503, Body: bodyUnavailable, ContentType: "application/json", RetryAfter: "1",
		Proof:   proof{none, none, none},
		Counted: counts{decided(e.id, reason, cause, "unavailable"): 1},
	}
}
