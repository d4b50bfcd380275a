package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/envoy"
	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/test/backend"
	"github.com/honestlimit/ratelimit/test/token"
)

// roomy is a policy file whose limits no test reaches, so that only faults decide.
const roomy = `
domain: mesh
policies:
  - endpoint_id: pdftalk.ingest
    descriptor: [{key: endpoint_id, value: pdftalk.ingest}, {key: tenant}]
    sliding_window: {limit: 1000000, window: 60s}
    fail_mode: fail_closed
  - endpoint_id: resumint.tailor
    descriptor: [{key: endpoint_id, value: resumint.tailor}, {key: tenant}]
    token_bucket: {rate: 1/min, burst: 1000000}
    fail_mode: fail_open
    fallback_rate_per_process: 1000/s
`

// neverOpens keeps the breaker closed, so that it hides no row of the table.
const neverOpens = "--breaker-failures=1000000"

// Patience of Envoy with the service (envoy.yaml [4]). While a machine is so busy that the service is not scheduled,
// Envoy gives up after the product's 50 ms, and then the answer is Envoy's own, not the one under test. Most tests
// therefore let it wait longer. It stays below atMost, so no test passes by Envoy's giving up.
const (
	productPatience = "0.050s"
	longPatience    = "0.400s"
)

// meshConfig describes a trial. Every field is optional.
type meshConfig struct {
	// Policies is the text of the policy file; default roomy.
	Policies string
	// Patience is how long Envoy waits for the service; default longPatience.
	Patience string
	// Edits change envoy.yaml, as somebody might who takes over only parts of it.
	Edits []edit
}

// edit changes one text of envoy.yaml, which must be there once. It may say $SERVICE for the socket address of the
// service.
type edit struct{ from, to string }

// mesh is a trial: two stand-in backends, an Envoy in front of them, and the service that Envoy asks, once serve has
// started one.
type mesh struct {
	edge      string // URL of Envoy
	admin     string // URL of Envoy's admin
	grpc      string // where Envoy expects the service
	envoy     *process.Process
	accessLog *journal
	backends  map[string]*backend.Handler
	policies  string // the file
	secrets   *secrets
	tenant    string // whom requests are made for
	issuer    *token.Issuer
	bearers   sync.Map // tokens by tenant
	asked     atomic.Int64
	service   *service // the one that serves now
}

func newMesh(t *testing.T, cfg meshConfig) *mesh {
	t.Helper()
	if cfg.Policies == "" {
		cfg.Policies = roomy
	}
	if cfg.Patience == "" {
		cfg.Patience = longPatience
	}
	m := &mesh{
		accessLog: &journal{}, policies: writePolicies(t, cfg.Policies), secrets: &secrets{},
		backends: map[string]*backend.Handler{
			pdftalk.service: backend.New(backend.PDFTalk), resumint.service: backend.New(backend.Resumint),
		},
	}
	m.startEnvoy(t, cfg)
	m.tenant = m.newTenant(t)
	return m
}

// newTenant makes up a tenant whose buckets nobody has charged.
func (m *mesh) newTenant(t *testing.T) string {
	t.Helper()
	return m.secrets.keep(fmt.Sprintf("tenant-of-%x-%d", time.Now().UnixNano(), m.asked.Add(1)))
}

// bearer is a token of the tenant.
func (m *mesh) bearer(tenant string) (string, error) {
	if b, ok := m.bearers.Load(tenant); ok {
		return b.(string), nil
	}
	text, err := m.issuer.Token(tenant, time.Hour)
	if err != nil {
		return "", err
	}
	m.bearers.Store(tenant, m.secrets.keep(text))
	return text, nil
}

// startEnvoy runs Envoy on ports that were free a moment ago, and tries other ones if they no longer are.
func (m *mesh) startEnvoy(t *testing.T, cfg meshConfig) {
	t.Helper()
	path, err := process.Envoy(t.Context())
	if err != nil {
		t.Fatalf("%v\n`scripts/envoy.sh` fetches Envoy, or set ENVOY=/path/to/envoy", err)
	}
	dir := t.TempDir()
	if m.issuer, err = token.Open(dir); err != nil {
		t.Fatal(err)
	}
	upstreams := envoy.Config{KeySet: filepath.Join(dir, token.KeySetFile)}
	upstreams.PDFTalk = listen(t, m.backends[pdftalk.service])
	upstreams.Resumint = listen(t, m.backends[resumint.service])
	for range 5 {
		if err = m.tryEnvoy(t, path, filepath.Join(dir, "envoy.yaml"), upstreams, cfg); err == nil {
			return
		}
		if !errors.Is(err, process.ErrExited) {
			break
		}
	}
	t.Fatal(err)
}

func listen(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func (m *mesh) tryEnvoy(t *testing.T, path, file string, upstreams envoy.Config, cfg meshConfig) error {
	t.Helper()
	addrs, err := process.FreeAddresses(3)
	if err != nil {
		return err
	}
	upstreams.Listen, upstreams.Admin, upstreams.RateLimit = addrs[0], addrs[1], addrs[2]
	text, err := envoy.Render(upstreams)
	if err != nil {
		return err
	}
	for _, e := range append([]edit{{productPatience, cfg.Patience}}, cfg.Edits...) {
		text = e.apply(t, text, addrs[2])
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	m.edge, m.admin, m.grpc = "http://"+addrs[0], "http://"+addrs[1], addrs[2]
	m.envoy, err = process.Start(process.Config{
		Name: "Envoy", Path: path, Stdout: m.accessLog, Stderr: m.accessLog,
		Args: []string{
			"--disable-hot-restart", "--concurrency", "1", "-l", "warning", "-c", file,
			"--file-flush-interval-msec", "20", // the access log's; the default is 10 s
		},
	})
	if err != nil {
		return err
	}
	t.Cleanup(func() { m.endEnvoy(t) })
	ctx, cancel := deadline(t)
	defer cancel()
	return m.envoy.AwaitReady(ctx, process.HTTPOK(m.admin+"/ready"))
}

func (e edit) apply(t *testing.T, text, service string) string {
	t.Helper()
	address := strings.NewReplacer("$SERVICE", socketAddress(service))
	from := address.Replace(e.from)
	if n := strings.Count(text, from); n != 1 {
		t.Fatalf("envoy.yaml says %q %d times, want once", from, n)
	}
	return strings.Replace(text, from, address.Replace(e.to), 1)
}

// socketAddress is how envoy.Render writes addr.
func socketAddress(addr string) string {
	host, port, _ := strings.Cut(addr, ":")
	return fmt.Sprintf("{address: %q, port_value: %s}", host, port)
}

func (m *mesh) endEnvoy(t *testing.T) {
	t.Helper()
	if err := m.envoy.Stop(); err != nil {
		t.Error(err)
	}
	m.secrets.search(t, "Envoy's log", m.accessLog.text())
	if t.Failed() {
		t.Logf("Envoy's log ends with:\n%s", m.accessLog.tail(30))
	}
}

// serve runs the service until t ends, and waits until Envoy gets answers from it. It is told nothing of a store
// unless flags do.
func (m *mesh) serve(t *testing.T, flags ...string) *service {
	t.Helper()
	m.service = startService(t, m.grpc, m.secrets, append([]string{"--policies", m.policies}, flags...)...)
	m.awaitDecided(t)
	return m.service
}

// awaitDecided waits until Envoy asks the service and is answered: it notices a new process at its next health check,
// at the latest. No store is needed for that, and no emergency token is spent.
func (m *mesh) awaitDecided(t *testing.T) {
	t.Helper()
	redistest.Eventually(t, "Envoy to be answered by the service", func() bool {
		return m.ask(t, forgotten, question{}).Proof.Decision == "ALLOWED"
	})
}

// awaitHealthy waits until both endpoints are decided by the store again.
func (m *mesh) awaitHealthy(t *testing.T) {
	t.Helper()
	for _, e := range endpoints {
		m.awaitAllowed(t, e)
	}
}

// awaitAllowed waits until the store admits a request of e.
func (m *mesh) awaitAllowed(t *testing.T, e endpoint) {
	t.Helper()
	redistest.Eventually(t, e.id+" to be decided by the store", func() bool {
		return m.ask(t, e, question{}).Proof.Decision == "ALLOWED"
	})
}

// startRedis returns a real server for the service, whose log is shown if the test fails.
func startRedis(t *testing.T, cfg redistest.Config) *redistest.Server {
	t.Helper()
	server := redistest.Start(t, cfg)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Redis' log:\n%s", server.Logs())
		}
	})
	return server
}
