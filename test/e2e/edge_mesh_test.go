package e2e_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/honestlimit/ratelimit/envoy"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/test/backend"
	"github.com/honestlimit/ratelimit/test/process"
	"github.com/honestlimit/ratelimit/test/token"
)

// complete is a policy file that governs every route of envoy.yaml, with numbers that come out whole.
const complete = `
domain: mesh
policies:
  - endpoint_id: pdftalk.ingest
    descriptor: [{key: endpoint_id, value: pdftalk.ingest}, {key: tenant}]
    sliding_window: {limit: 1000, window: 1h}
    max_cost: 500
    fail_mode: fail_closed
  - endpoint_id: resumint.tailor
    descriptor: [{key: endpoint_id, value: resumint.tailor}, {key: tenant}]
    token_bucket: {rate: 1/min, burst: 3}
    fail_mode: fail_open
    fallback_rate_per_process: 1/min
  - endpoint_id: default
    descriptor: [{key: endpoint_id, value: default}]
    token_bucket: {rate: 1/day, burst: 100}
    fail_mode: fail_closed
`

// metered is forgotten where the policies know of it.
var metered = endpoint{id: "default", service: forgotten.service, path: forgotten.path, body: forgotten.body}

// edit changes one text of envoy.yaml, which must be there once, as somebody might who takes over only parts of it.
type edit struct{ from, to string }

// newEditedMesh is newMesh with an Envoy whose configuration is edited. An edit may say $SERVICE for the socket
// address of the service.
func newEditedMesh(t *testing.T, cfg meshConfig, edits ...edit) *mesh {
	t.Helper()
	m := &mesh{
		accessLog: &journal{}, policies: writePolicies(t, cfg.Policies), secrets: &secrets{},
		backends: map[string]*backend.Handler{
			pdftalk.service: backend.New(backend.PDFTalk), resumint.service: backend.New(backend.Resumint),
		},
	}
	dir := t.TempDir()
	var err error
	if m.issuer, err = token.Open(dir); err != nil {
		t.Fatal(err)
	}
	upstreams := envoy.Config{
		KeySet:  filepath.Join(dir, token.KeySetFile),
		PDFTalk: listen(t, m.backends[pdftalk.service]), Resumint: listen(t, m.backends[resumint.service]),
	}
	file := filepath.Join(dir, "envoy.yaml")
	for range 5 {
		m.writeEdited(t, file, upstreams, edits)
		if err = m.startEdited(t, file); err == nil {
			m.tenant = m.newTenant(t)
			return m
		}
		if !errors.Is(err, process.ErrExited) { // a port that was taken meanwhile ends Envoy; try others
			break
		}
	}
	t.Fatal(err)
	return nil
}

func (m *mesh) writeEdited(t *testing.T, file string, cfg envoy.Config, edits []edit) {
	t.Helper()
	addrs, err := process.FreeAddresses(3)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listen, cfg.Admin, cfg.RateLimit = addrs[0], addrs[1], addrs[2]
	m.edge, m.admin, m.grpc = "http://"+addrs[0], "http://"+addrs[1], addrs[2]
	text, err := envoy.Render(cfg)
	if err != nil {
		t.Fatal(err)
	}
	service := socketAddress(m.grpc)
	for _, e := range append([]edit{{productPatience, longPatience}}, edits...) {
		from, to := strings.ReplaceAll(e.from, "$SERVICE", service), strings.ReplaceAll(e.to, "$SERVICE", service)
		if n := strings.Count(text, from); n != 1 {
			t.Fatalf("envoy.yaml says %q %d times, want once", from, n)
		}
		text = strings.Replace(text, from, to, 1)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// socketAddress is how envoy.Render writes addr.
func socketAddress(addr string) string {
	host, port, _ := strings.Cut(addr, ":")
	return `{address: "` + host + `", port_value: ` + port + `}`
}

func (m *mesh) startEdited(t *testing.T, file string) error {
	t.Helper()
	path, err := process.Envoy(t.Context())
	if err != nil {
		return err
	}
	m.envoy, err = process.Start(process.Config{
		Name: "Envoy", Path: path, Stdout: m.accessLog, Stderr: m.accessLog,
		Args: []string{
			"--disable-hot-restart", "--concurrency", "1", "-l", "warning", "-c", file,
			"--file-flush-interval-msec", "20",
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

// serveMortal is serve for a service whose end is the test's own affair.
func (m *mesh) serveMortal(t *testing.T, flags ...string) *service {
	t.Helper()
	m.service = startMortal(t, m.grpc, m.secrets, append([]string{"--policies", m.policies}, flags...)...)
	m.awaitDecided(t)
	return m.service
}

// startMortal is startService for a service whose end is the test's own affair.
func startMortal(t *testing.T, grpc string, secrets *secrets, flags ...string) *service {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s := &service{log: &journal{}, secrets: secrets}
	s.run(t, path, grpc, flags)
	t.Cleanup(func() {
		if err := s.process.Stop(); err != nil {
			t.Error(err)
		}
		s.secrets.search(t, "the service: the log", s.log.text())
		if strings.Contains(s.log.text(), "panic:") {
			t.Error("the service's log tells of a panic")
		}
		if t.Failed() {
			t.Logf("the service's log ends with:\n%s", s.log.tail(40))
		}
	})
	if err := s.awaitReady(t); err != nil {
		t.Fatal(err)
	}
	return s
}

// awaitExit waits until the service has ended by itself, and checks that it calls that a success.
func (s *service) awaitExit(t *testing.T) {
	t.Helper()
	redistest.Eventually(t, "the service to end", func() bool { return s.process.Exited() != nil })
	if err := s.process.Exited(); !strings.Contains(err.Error(), "exit status 0") {
		t.Errorf("the service ended badly: %v", err)
	}
}
