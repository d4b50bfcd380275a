package e2e_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/internal/redistest"
)

// product runs the program to its end, and returns its exit code and all that it printed.
func product(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := deadline(t)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		return exit.ExitCode(), string(out)
	}
	return 0, string(out)
}

// checkHealth checks what `ratelimit health` comes to.
func checkHealth(t *testing.T, what string, want int, says string, args ...string) {
	t.Helper()
	code, said := product(t, append([]string{"health", "--timeout", "5s"}, args...)...)
	if code != want || !strings.Contains(said, says) {
		t.Errorf("%s: health exits %d and says %q, want %d and %q", what, code, said, want, says)
	}
}

// Health is told over gRPC, to `ratelimit health` and over HTTP, and all agree: it serves whether or not its store is
// there, and no more from the moment when it is told to stop, although it goes on deciding.
func TestHealth(t *testing.T) {
	addrs, err := process.FreeAddresses(2)
	if err != nil {
		t.Fatal(err)
	}
	addr, nobody := addrs[0], addrs[1]
	checkHealth(t, "before the start", 1, addr, "--grpc", addr)
	s := startMortal(t, addr, &secrets{}, "--policies", writePolicies(t, complete), "--redis", "redis://"+nobody,
		"--drain-delay", "1h")
	p := &peer{conn: connect(t, addr, insecure.NewCredentials()), service: s, secrets: s.secrets}
	p.checkServing(t, grpc_health_v1.HealthCheckResponse_SERVING)
	checkHealth(t, "without its store", 0, "serving", "--grpc", addr)
	if got := getStatus(t, http.MethodGet, s.admin+"/readyz"); got != 200 {
		t.Errorf("/readyz answers %d, want 200", got)
	}
	if err := s.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.awaitLog(t, line{"message": "draining"})
	p.checkServing(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	checkHealth(t, "while it drains", 1, "NOT_SERVING", "--grpc", addr)
	for path, want := range map[string]int{"/readyz": 503, "/healthz": 200} {
		if got := getStatus(t, http.MethodGet, s.admin+path); got != want {
			t.Errorf("%s answers %d while it drains, want %d", path, got, want)
		}
	}
	if v := p.ask(t, about("nobody", "knows")); v.Cause != "unmatched" {
		t.Errorf("while it drains a request comes to %+v, want an answer as before", v)
	}
	if err := s.process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	s.awaitExit(t)
	checkHealth(t, "after the end", 1, addr, "--grpc", addr)
}

// checkServing asks the health service about both of its names, and about one that it does not know.
func (p *peer) checkServing(t *testing.T, want grpc_health_v1.HealthCheckResponse_ServingStatus) {
	t.Helper()
	ctx, cancel := deadline(t)
	defer cancel()
	client := grpc_health_v1.NewHealthClient(p.conn)
	for _, name := range []string{"", ratelimitv3.RateLimitService_ServiceDesc.ServiceName} {
		got, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: name})
		if err != nil || got.GetStatus() != want {
			t.Errorf("health of %q is %v, %v, want %v", name, got, err, want)
		}
	}
	if got, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "unknown"}); err == nil {
		t.Errorf("health of an unknown service is %v, want an error", got)
	}
}

// Tools learn from the service itself how to talk to it.
func TestReflection(t *testing.T) {
	p := newPeer(t, complete)
	ctx, cancel := deadline(t)
	defer cancel()
	p.checkServing(t, grpc_health_v1.HealthCheckResponse_SERVING)
	stream, err := grpc_reflection_v1.NewServerReflectionClient(p.conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_FileContainingSymbol{
			FileContainingSymbol: "envoy.service.ratelimit.v3.RateLimitService",
		},
	}); err != nil {
		t.Fatal(err)
	}
	got, err := stream.Recv()
	if err != nil || len(got.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
		t.Errorf("reflection answers %v, %v, want the files of the protocol", got, err)
	}
}

// Envoy finds the service on a unix socket, which outlives neither the service nor its being killed.
func TestUnixSocket(t *testing.T) {
	socket := filepath.Join(workshop, "grpc.sock") // its path may have 108 bytes, which one in t.TempDir could exceed
	m := newMesh(t, meshConfig{Policies: complete, Edits: []edit{
		{"socket_address: $SERVICE", `pipe: {path: "` + socket + `"}`},
		{"  - name: ratelimit\n    type: STRICT_DNS\n", "  - name: ratelimit\n    type: STATIC\n"},
	}})
	m.grpc = "unix:" + socket
	s := m.serveMortal(t)
	m.checkLeft(t, pdftalk, m.newTenant(t), "999")
	checkHealth(t, "on the socket", 0, "serving", "--grpc", m.grpc)
	code, said := product(t, "serve", "--policies", m.policies, "--grpc", m.grpc, "--admin", "127.0.0.1:0")
	if code != 1 || !strings.Contains(said, "another process listens on "+socket) {
		t.Errorf("a second service on the socket exits %d and says %q", code, said)
	}
	if err := s.process.Kill(); err != nil {
		t.Fatal(err)
	}
	got, _, _ := m.run(t, m.by(t, pdftalk, m.tenant))
	check(t, "after it was killed", refusedUndecided(), got)
	next := m.serveMortal(t) // the socket of the killed one is in the way
	m.checkLeft(t, pdftalk, m.newTenant(t), "999")
	if err := next.process.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// upstreamTLS makes Envoy speak mutual TLS to the service.
func upstreamTLS(c *redistest.Certificates) edit {
	const cluster = "    type: STRICT_DNS\n    connect_timeout: 0.25s\n"
	return edit{cluster, cluster + `    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        sni: localhost
        common_tls_context:
          alpn_protocols: [h2] # gRPC servers in Go hang up on callers that do not offer it
          tls_certificates:
          - certificate_chain: {filename: "` + c.ClientCertFile + `"}
            private_key: {filename: "` + c.ClientKeyFile + `"}
          validation_context: {trusted_ca: {filename: "` + c.CAFile + `"}}
`}
}

// Envoy and the service know each other by their certificates; whoever has none that counts is not heard.
func TestMutualTLS(t *testing.T) {
	certs, strangers := redistest.NewCertificates(t), redistest.NewCertificates(t)
	m := newMesh(t, meshConfig{Policies: complete, Edits: []edit{upstreamTLS(certs)}})
	m.serve(t, "--grpc-cert", certs.ServerCertFile, "--grpc-key", certs.ServerKeyFile, "--grpc-client-ca", certs.CAFile)
	m.checkLeft(t, pdftalk, m.newTenant(t), "999")
	m.checkDecidedFreely(t)

	friend, anonymous, stranger := certs.ClientConfig(t), certs.ClientConfig(t), strangers.ClientConfig(t)
	anonymous.Certificates = nil
	stranger.RootCAs = friend.RootCAs
	for name, c := range map[string]struct {
		creds credentials.TransportCredentials
		heard bool
	}{
		"a friend":              {credentials.NewTLS(friend), true},
		"without a certificate": {credentials.NewTLS(anonymous), false},
		"a stranger":            {credentials.NewTLS(stranger), false},
		"in plain text":         {insecure.NewCredentials(), false},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := ratelimitv3.NewRateLimitServiceClient(connect(t, m.grpc, c.creds)).ShouldRateLimit(ctx,
			&ratelimitv3.RateLimitRequest{Domain: "elsewhere", Descriptors: []*commonv3.RateLimitDescriptor{about("k", "v")}})
		cancel()
		if heard := err == nil; heard != c.heard {
			t.Errorf("%s is answered %v, want an answer: %v", name, err, c.heard)
		}
	}
}

// An Envoy whose certificate the service does not know gets no answer: fail_closed is refused, fail_open metered.
func TestMutualTLS_StrangerIsAnOutage(t *testing.T) {
	certs, strangers := redistest.NewCertificates(t), redistest.NewCertificates(t)
	strange := *certs
	strange.ClientCertFile, strange.ClientKeyFile = strangers.ClientCertFile, strangers.ClientKeyFile
	m := newMesh(t, meshConfig{Policies: complete, Edits: []edit{upstreamTLS(&strange)}})
	m.service = startService(t, m.grpc, m.secrets, "--policies", m.policies,
		"--grpc-cert", certs.ServerCertFile, "--grpc-key", certs.ServerKeyFile, "--grpc-client-ca", certs.CAFile)
	m.checkUndecided(t)
	if got := m.service.metrics(t).since(counts{}, decisionsTotal); len(got) != 0 {
		t.Errorf("the service decided: %s", cmp.Diff(counts{}, got))
	}
}
