package envoy_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/honestlimit/ratelimit/envoy"
	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/test/backend"
	"github.com/honestlimit/ratelimit/test/token"
)

// wait bounds everything that these tests wait for; all of it takes about a second.
const wait = 30 * time.Second

// Answers that Envoy words itself.
const (
	bodyLimited     = `{"detail": "rate limit exceeded"}`
	bodyEmergency   = `{"detail": "rate limit exceeded", "decision": "EMERGENCY_LOCAL_LIMIT"}`
	bodyUnavailable = `{"detail": "rate limiter unavailable"}`
	bodyNoIdentity  = `{"detail": "request carries no rate limit identity"}`
	bodyBadToken    = `{"detail": "token is not valid"}`
)

// edge is a real Envoy with envoy.yaml, in front of two stand-in backends, asking a fake service.
type edge struct {
	url               string
	service           *fakeService
	stopService       func()
	pdftalk, resumint *backend.Handler
	issuer            *token.Issuer
}

func newEdge(t *testing.T) *edge {
	t.Helper()
	binary, err := process.Envoy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := process.FreeAddresses(3)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	e := &edge{
		url: "http://" + addrs[0], service: &fakeService{say: allowed},
		pdftalk: backend.New(backend.PDFTalk), resumint: backend.New(backend.Resumint),
	}
	if e.issuer, err = token.Open(dir); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "envoy.yaml")
	write(t, config, render(t, envoy.Config{
		Listen: addrs[0], Admin: addrs[1], RateLimit: addrs[2],
		PDFTalk: serve(t, e.pdftalk), Resumint: serve(t, e.resumint),
		KeySet: filepath.Join(dir, token.KeySetFile),
	}))
	e.stopService = e.service.serve(t, addrs[2])
	t.Cleanup(e.stopService)
	startEnvoy(t, binary, config, addrs[1])
	return e
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func startEnvoy(t *testing.T, binary, config, admin string) {
	t.Helper()
	p, err := process.Start(process.Config{
		Name: "envoy", Path: binary,
		Args: []string{"--disable-hot-restart", "--concurrency", "1", "-l", "warning", "-c", config},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	if err := p.AwaitReady(ctx, process.HTTPOK("http://"+admin+"/ready")); err != nil {
		t.Fatal(err)
	}
}

// reply is what a client sees.
type reply struct {
	Status     int
	Body       string
	RetryAfter string
}

// get sends a request with the headers given as name, value pairs.
func (e *edge) get(t *testing.T, path string, headers ...string) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, string(body), resp.Header.Get("retry-after")}
}

// question is one request of Envoy to the service, in short.
type question struct {
	Endpoint, Tenant string
	// Hits is the descriptor's hits_addend, -1 where it has none.
	Hits int64
}

func (e *edge) questions() []question {
	var short []question
	for _, req := range e.service.questions() {
		for _, d := range req.GetDescriptors() {
			q := question{Hits: -1}
			for _, entry := range d.GetEntries() {
				switch entry.GetKey() {
				case "endpoint_id":
					q.Endpoint = entry.GetValue()
				case "tenant":
					q.Tenant = entry.GetValue()
				}
			}
			if d.GetHitsAddend() != nil {
				q.Hits = int64(d.GetHitsAddend().GetValue())
			}
			short = append(short, q)
		}
	}
	return short
}

func (e *edge) backendCalls() int64 {
	return e.pdftalk.Calls().Requests + e.resumint.Calls().Requests
}

// One Envoy serves all of these: it takes a second to start, and they leave nothing behind but an empty bucket for
// undecided requests, which refills.
func TestEdge(t *testing.T) {
	e := newEdge(t)
	t.Run("pages", func(t *testing.T) { testPages(t, e) })
	t.Run("identity", func(t *testing.T) { testIdentity(t, e) })
	t.Run("paths", func(t *testing.T) { testPaths(t, e) })
	t.Run("answers", func(t *testing.T) { testAnswers(t, e) })
	t.Run("undecided requests are metered", func(t *testing.T) { testMetering(t, e) })
	t.Run("service gone", func(t *testing.T) { testServiceGone(t, e) })
}

// Whatever a client says of its pages, the request is charged, and PDFTalk hears of as many pages as were charged.
func testPages(t *testing.T, e *edge) {
	cases := []struct {
		name   string
		values []string
		want   int64
	}{
		{"absent", nil, 1},
		{"one", []string{"1"}, 1},
		{"many", []string{"250"}, 250},
		{"the most", []string{"999999"}, 999999},
		{"too many", []string{"1000000"}, 1},
		{"more than an integer holds", []string{"99999999999999999999"}, 1},
		{"zero", []string{"0"}, 1},
		{"zeroes", []string{"000"}, 1},
		{"a leading zero", []string{"05"}, 1},
		{"negative", []string{"-3"}, 1},
		{"signed", []string{"+3"}, 1},
		{"a fraction", []string{"2.5"}, 1},
		{"an exponent", []string{"1e3"}, 1},
		{"hexadecimal", []string{"0x10"}, 1},
		{"junk", []string{"many"}, 1},
		{"empty", []string{""}, 1},
		{"a list", []string{"5,7"}, 1},
		{"twice", []string{"5", "7"}, 1},
		{"good, then zero", []string{"5", "0"}, 1},
		{"a substitution", []string{"%REQ(x)%"}, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e.service.from(allowed)
			var headers []string
			for _, v := range c.values {
				headers = append(headers, "x-pages", v)
			}
			if got := e.get(t, "/pdftalk/ingest", headers...); got.Status != http.StatusOK {
				t.Errorf("answer = %+v, want 200", got)
			}
			want := []question{{"pdftalk.ingest", "anonymous", c.want}}
			if diff := cmp.Diff(want, e.questions()); diff != "" {
				t.Errorf("question (-want +got):\n%s", diff)
			}
			if got := e.pdftalk.Calls().PageHeader; got != strconv.FormatInt(c.want, 10) {
				t.Errorf("PDFTalk was told %q pages, want %d", got, c.want)
			}
		})
	}
}

func testIdentity(t *testing.T, e *edge) {
	stranger, err := token.New()
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, authorization string
		status              int
		tenant              string // As the service hears it.
		header              string // As the backend hears it.
	}{
		{"a good token", "Bearer " + issue(t, e.issuer, "acme", time.Hour), 200, "acme", "acme"},
		{"no token", "", 200, "anonymous", ""},
		{"no bearer", "Basic YWNtZTphY21l", 200, "anonymous", ""},
		{"a stranger's token", "Bearer " + issue(t, stranger, "acme", time.Hour), 401, "", ""},
		{"an expired token", "Bearer " + issue(t, e.issuer, "acme", -time.Hour), 401, "", ""},
		{"a token for ever", "Bearer " + sign(t, e.issuer, jwt.Claims{
			Issuer: token.IssuerName, Audience: jwt.Audience{token.Audience}, Subject: "acme",
		}), 401, "", ""},
		{"another audience", "Bearer " + sign(t, e.issuer, jwt.Claims{
			Issuer: token.IssuerName, Audience: jwt.Audience{"other"}, Subject: "acme",
			Expiry: jwt.NewNumericDate(time.Now().Add(time.Hour)),
		}), 401, "", ""},
		{"a token of nobody", "Bearer " + issue(t, e.issuer, "", time.Hour), 200, "anonymous", ""},
		{"junk", "Bearer junk", 401, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e.service.from(allowed)
			before := e.backendCalls()
			got := e.get(t, "/resumint/tailor", "authorization", c.authorization, "x-tenant", "forged")
			if got.Status != c.status {
				t.Fatalf("answer = %+v, want %d", got, c.status)
			}
			if c.status == http.StatusUnauthorized {
				if got.Body != bodyBadToken || e.backendCalls() != before || len(e.questions()) != 0 {
					t.Errorf("answer = %+v; the request went on, or was not refused in our words", got)
				}
				return
			}
			if diff := cmp.Diff([]question{{"resumint.tailor", c.tenant, -1}}, e.questions()); diff != "" {
				t.Errorf("question (-want +got):\n%s", diff)
			}
			if got := e.resumint.Calls().Tenant; got != c.header {
				t.Errorf("Resumint was told tenant %q, want %q", got, c.header)
			}
		})
	}
}

func issue(t *testing.T, i *token.Issuer, tenant string, life time.Duration) string {
	t.Helper()
	text, err := i.Token(tenant, life)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func sign(t *testing.T, i *token.Issuer, claims jwt.Claims) string {
	t.Helper()
	text, err := i.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// No spelling of a path slips past its limit, and no path is without one.
func testPaths(t *testing.T, e *edge) {
	pdftalk := []question{{"pdftalk.ingest", "anonymous", 1}}
	fallback := []question{{"default", "", -1}}
	cases := []struct {
		path   string
		status int
		want   []question
	}{
		{"/pdftalk", 200, pdftalk},
		{"/pdftalk/ingest?page=1", 200, pdftalk},
		{"//pdftalk/ingest", 200, pdftalk},
		{"/./pdftalk/ingest", 200, pdftalk},
		{"/resumint/../pdftalk/ingest", 200, pdftalk},
		{"/%70dftalk/ingest", 200, pdftalk},
		{"/resumint/..%2fpdftalk", 400, nil},
		{"/resumint/..%5cpdftalk", 400, nil},
		{"/pdftalker", 200, fallback},
		{"/PDFTalk/ingest", 200, fallback},
		{"/", 200, fallback},
	}
	for _, c := range cases {
		t.Run(c.path, func(t *testing.T) {
			e.service.from(allowed)
			if got := e.get(t, c.path); got.Status != c.status {
				t.Errorf("answer = %+v, want %d", got, c.status)
			}
			if diff := cmp.Diff(c.want, e.questions()); diff != "" {
				t.Errorf("question (-want +got):\n%s", diff)
			}
		})
	}
}

// What the service answers, and what it cannot be trusted to answer, on a route that fails closed. A request that was
// refused never reached the backend.
func testAnswers(t *testing.T, e *edge) {
	cases := []struct {
		name string
		say  answer
		want reply
	}{
		{"limited", limited, reply{429, bodyLimited, "7"}},
		{"over limit for want of a store", overLimitFailClosed, reply{503, bodyUnavailable, "1"}},
		{"failed precondition", refuse(codes.FailedPrecondition), reply{503, bodyUnavailable, "1"}},
		{"unavailable", refuse(codes.Unavailable), reply{503, bodyUnavailable, "1"}},
		{"internal", refuse(codes.Internal), reply{503, bodyUnavailable, "1"}},
		{"silence", hang, reply{503, bodyUnavailable, "1"}},
		{"an empty answer, which Envoy reads as yes", empty, reply{403, bodyNoIdentity, ""}},
	}
	for _, c := range cases {
		for _, path := range []string{"/pdftalk/ingest", "/forgotten"} {
			t.Run(c.name+path, func(t *testing.T) {
				e.service.from(c.say)
				before := e.backendCalls()
				if diff := cmp.Diff(c.want, e.get(t, path)); diff != "" {
					t.Errorf("answer (-want +got):\n%s", diff)
				}
				if got := e.backendCalls() - before; got != 0 {
					t.Errorf("%d calls reached a backend, want none", got)
				}
			})
		}
	}
	e.service.from(limited)
	if diff := cmp.Diff(reply{429, bodyLimited, "7"}, e.get(t, "/resumint/tailor")); diff != "" {
		t.Errorf("a limited request of a fail_open route (-want +got):\n%s", diff)
	}
}

// A fail_open route that nobody decides for is served, but only as fast as Envoy's own bucket of 2 a second.
func testMetering(t *testing.T, e *edge) {
	for name, say := range map[string]answer{
		"unavailable": refuse(codes.Unavailable), "silence": hang, "an empty answer": empty,
	} {
		t.Run(name, func(t *testing.T) {
			e.service.from(say)
			e.awaitPass(t)
			e.checkMetered(t)
		})
	}
	e.service.from(allowed)
	if passed, _ := e.burst(t, 20); passed != 20 {
		t.Errorf("%d of 20 passed while the service decides, want all", passed)
	}
}

// checkMetered sends more than the bucket holds. It refills meanwhile: 20 silences of 50 ms take a second, 2 tokens.
func (e *edge) checkMetered(t *testing.T) {
	t.Helper()
	passed, refused := e.burst(t, 20)
	if passed > 10 {
		t.Errorf("%d of 20 passed, want at most 10", passed)
	}
	if diff := cmp.Diff(reply{429, bodyEmergency, "1"}, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

// burst sends n requests to the fail_open route, one after the other. It returns how many passed, and the last answer
// to one that did not.
func (e *edge) burst(t *testing.T, n int) (passed int, refused reply) {
	t.Helper()
	for range n {
		got := e.get(t, "/resumint/tailor")
		if got.Status == http.StatusOK {
			passed++
			continue
		}
		refused = got
	}
	return passed, refused
}

// awaitPass waits until the bucket for undecided requests has something again, and takes it.
func (e *edge) awaitPass(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	if err := process.Await(ctx, "the bucket to refill", process.HTTPOK(e.url+"/resumint/tailor")); err != nil {
		t.Fatal(err)
	}
}

func testServiceGone(t *testing.T, e *edge) {
	e.stopService()
	if diff := cmp.Diff(reply{503, bodyUnavailable, "1"}, e.get(t, "/pdftalk/ingest")); diff != "" {
		t.Errorf("fail_closed (-want +got):\n%s", diff)
	}
	e.awaitPass(t)
	e.checkMetered(t)
}
