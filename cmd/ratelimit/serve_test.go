package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/internal/redistest"
)

// tenant is an identity; nothing the service says may show it.
const tenant = "tenant-Zx81"

// search looks for identities and secrets in everything that the service says.
func (s *server) search(t *testing.T, secrets ...string) {
	t.Helper()
	told := map[string]string{"the log": s.log.text()}
	for _, page := range []string{"/metrics", "/policies", "/state"} {
		_, told[page] = s.get(t, page)
	}
	for where, text := range told {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %q", where, secret)
			}
		}
	}
}

// deadAddress is one that nothing listens on.
func deadAddress(t *testing.T) string {
	t.Helper()
	addrs, err := process.FreeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	return addrs[0]
}

func TestServe_DecidesOnTheEmbeddedStore(t *testing.T) {
	s := startServe(t, nil, "--policies", policyFile(t, mesh))
	conn := dial(t, s.grpc, nil)
	for range 2 {
		mustDecide(t, conn, "pdftalk.ingest", tenant, "ALLOWED")
	}
	got := mustDecide(t, conn, "pdftalk.ingest", tenant, "RATE_LIMITED")
	if got.GetOverallCode() != ratelimitv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("the third request is answered %v, want OVER_LIMIT", got.GetOverallCode())
	}
	mustDecide(t, conn, "elsewhere", tenant, "ALLOWED") // unmatched
	s.awaitLog(t, map[string]any{
		"level": "warn", "message": "request denied", "endpoint_id": "pdftalk.ingest", "reason": "RATE_LIMITED",
	})
	if _, text := s.get(t, "/metrics"); !strings.Contains(text, `ratelimit_decisions_total{answer="ok",cause="none",`+
		`domain="mesh",endpoint_id="pdftalk.ingest",reason="ALLOWED"} 2`) ||
		!strings.Contains(text, `ratelimit_unmatched_total{domain="mesh"} 1`) {
		t.Errorf("metrics do not count the requests:\n%s", text)
	}
	s.search(t, tenant)
}

func TestServe_TellsWhatItEnforcesAndWarns(t *testing.T) {
	s := startServe(t, nil, "--policies", policyFile(t, mesh))
	s.awaitLog(t, map[string]any{
		"message": "policy", "endpoint_id": "resumint.tailor", "limit": "1/h, burst 5",
		"store_away": "fail_open at 3/h per process", "descriptor": "endpoint_id=resumint.tailor, tenant=*",
	})
	s.awaitLog(t, map[string]any{"message": "enforcing", "domain": "mesh", "policies": 2.0})
	s.awaitLog(t, map[string]any{"level": "warn", "flag": "--redis"})
	if line := s.awaitLog(t, map[string]any{"message": "serving"}); line["store"] != "memory of this process" ||
		line["budget"] != "20ms" {
		t.Errorf("the first line is %v", line)
	}
}

func TestServe_ShowsItselfOnTheAdminPort(t *testing.T) {
	s := startServe(t, nil, "--policies", policyFile(t, mesh))
	for path, want := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/metrics": 200, "/policies": 200, "/state": 200, "/": 404, "/debug/pprof/": 404,
	} {
		if code, body := s.get(t, path); code != want {
			t.Errorf("GET %s = %d, want %d: %s", path, code, want, body)
		}
	}
	if resp, err := http.Post(s.admin+"/policies", "", nil); err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST /policies = %v, %v, want 405", resp, err)
	}
	var page struct {
		Version string
		Domains []struct {
			Name, Version string
			Policies      []struct {
				EndpointID string `json:"endpoint_id"`
				Limit      string
				FailMode   string `json:"fail_mode"`
				Fallback   string `json:"fallback_rate_per_process"`
			}
		}
	}
	_, body := s.get(t, "/policies")
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		t.Fatal(err)
	}
	if len(page.Domains) != 1 || len(page.Domains[0].Policies) != 2 || page.Domains[0].Version == "" {
		t.Fatalf("/policies = %s", body)
	}
	if p := page.Domains[0].Policies[1]; p.EndpointID != "resumint.tailor" || p.Limit != "1/h, burst 5" ||
		p.FailMode != "fail_open" || p.Fallback != "3/h" {
		t.Errorf("/policies = %s", body)
	}
	var state map[string]any
	_, body = s.get(t, "/state")
	if err := json.Unmarshal([]byte(body), &state); err != nil || state["serving"] != true || state["memory"] == nil {
		t.Errorf("/state = %s, %v", body, err)
	}
}

func TestServe_OffersHealthAndReflection(t *testing.T) {
	s := startServe(t, nil, "--policies", policyFile(t, mesh))
	conn := dial(t, s.grpc, nil)
	for _, name := range []string{"", "envoy.service.ratelimit.v3.RateLimitService"} {
		got, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
		if err != nil || got.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("health of %q = %v, %v, want SERVING", name, got, err)
		}
	}
	stream, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{},
	}); err != nil {
		t.Fatal(err)
	}
	got, err := stream.Recv()
	if err != nil || !strings.Contains(got.String(), "envoy.service.ratelimit.v3.RateLimitService") {
		t.Errorf("reflection lists %v, %v", got, err)
	}
}

func TestHealth_AsksTheService(t *testing.T) {
	s := startServe(t, nil, "--policies", policyFile(t, mesh), "--drain-delay", "1h")
	if got := ratelimit(t, "health", "--grpc", s.grpc); got.code != 0 || got.out != "serving\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q, want 0", got.code, got.out, got.errOut)
	}
	if err := s.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.awaitLog(t, map[string]any{"message": "draining"})
	if got := ratelimit(t, "health", "--grpc", s.grpc); got.code != 1 || !strings.Contains(got.errOut, "NOT_SERVING") {
		t.Errorf("while draining: exit code %d, stderr %q, want 1", got.code, got.errOut)
	}
	if err := s.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.exited(t)
	if got := ratelimit(t, "health", "--grpc", s.grpc); got.code != 1 {
		t.Errorf("after the stop: exit code %d, want 1", got.code)
	}
}

func TestServe_ReadsFlagsFromTheEnvironment(t *testing.T) {
	s := startServe(t, []string{"RATELIMIT_POLICIES=" + policyFile(t, mesh), "RATELIMIT_BUDGET=7ms", "RATELIMIT_DENY=over_limit"})
	if line := s.awaitLog(t, map[string]any{"message": "serving"}); line["budget"] != "7ms" || line["deny"] != "over_limit" {
		t.Errorf("the first line is %v", line)
	}
}

func TestServe_ReloadsOnSIGHUP(t *testing.T) {
	path := policyFile(t, mesh)
	s := startServe(t, nil, "--policies", path)
	if err := s.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	// The file is as it was, so that only the signal can be the reason for a reload.
	s.awaitLog(t, map[string]any{"message": "policies reloaded", "outcome": "unchanged"})

	conn := dial(t, s.grpc, nil)
	replace := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".next", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".next", path); err != nil {
			t.Fatal(err)
		}
		if err := s.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	replace(strings.ReplaceAll(mesh, "limit: 2", "limit: none"))
	s.awaitLog(t, map[string]any{"level": "error", "message": "policies reloaded", "outcome": "kept"})
	if _, body := s.get(t, "/policies"); !strings.Contains(body, "last_error") || !strings.Contains(body, "2 per 1h") {
		t.Errorf("/policies = %s, want the old policies and the fault", body)
	}
	if code, _ := s.get(t, "/readyz"); code != http.StatusOK {
		t.Errorf("GET /readyz = %d with a faulty file, want 200", code)
	}
	mustDecide(t, conn, "pdftalk.ingest", tenant, "ALLOWED")

	replace(strings.ReplaceAll(mesh, "limit: 2", "limit: 1"))
	s.awaitLog(t, map[string]any{"level": "info", "message": "policies reloaded", "outcome": "installed"})
	mustDecide(t, conn, "pdftalk.ingest", tenant, "RATE_LIMITED")
}

func TestServe_AnswersByTheTableWhileRedisIsAway(t *testing.T) {
	addr := deadAddress(t)
	s := startServe(t, nil, "--policies", policyFile(t, mesh), "--redis", "redis://"+addr, "--breaker-failures", "3",
		"--breaker-quarantine", "7s", "--breaker-early-end-after", "90ms")
	conn := dial(t, s.grpc, nil)
	if code, _ := s.get(t, "/readyz"); code != http.StatusOK {
		t.Errorf("GET /readyz = %d, want 200 whatever the store does", code)
	}
	opened := s.awaitLog(t, map[string]any{"message": "breaker moved", "to": "open", "cause": "dial"})
	for field, most := range map[string]time.Duration{"quarantine": 7 * time.Second, "earliest_proof": 90 * time.Millisecond} {
		// Up to a fifth is taken off at random.
		if got, err := time.ParseDuration(opened[field].(string)); err != nil || got > most || got < most*3/4 {
			t.Errorf("%s = %v, %v, want at most %v", field, got, err, most)
		}
	}
	if _, err := ask(t.Context(), conn, "pdftalk.ingest", tenant); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("fail_closed is answered %v, want FAILED_PRECONDITION", err)
	}
	mustDecide(t, conn, "resumint.tailor", tenant, "CIRCUIT_OPEN") // a slow fallback rate still admits one
	mustDecide(t, conn, "resumint.tailor", tenant, "EMERGENCY_LOCAL_LIMIT")
	if _, body := s.get(t, "/state"); !strings.Contains(body, `"state": "open"`) || !strings.Contains(body, addr) {
		t.Errorf("/state = %s", body)
	}
	if _, text := s.get(t, "/metrics"); !strings.Contains(text, `ratelimit_breaker_state{state="open"} 1`) ||
		!strings.Contains(text, `ratelimit_breaker_transitions_total{from="closed",to="open"} 1`) ||
		!strings.Contains(text, `ratelimit_emergency_tokens_total{domain="mesh",endpoint_id="resumint.tailor"} 1`) {
		t.Errorf("metrics do not show the outage:\n%s", text)
	}
	s.search(t, tenant)
}

// The other deny mode tells Envoy to deny, and why, in an answer.
func TestServe_DeniesByAnswerIfToldTo(t *testing.T) {
	s := startServe(t, nil, "--policies", policyFile(t, mesh), "--redis", "redis://"+deadAddress(t),
		"--deny", "over_limit", "--breaker-failures", "1")
	s.awaitLog(t, map[string]any{"message": "breaker moved", "to": "open"})
	got := mustDecide(t, dial(t, s.grpc, nil), "pdftalk.ingest", tenant, "CIRCUIT_OPEN")
	if got.GetOverallCode() != ratelimitv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("overall code = %v, want OVER_LIMIT", got.GetOverallCode())
	}
}

// What costs too much is denied without the store, and yet counted and logged.
func TestServe_CountsWhatCostsTooMuch(t *testing.T) {
	s := startServe(t, nil, "--policies", policyFile(t, mesh))
	got, err := ratelimitv3.NewRateLimitServiceClient(dial(t, s.grpc, nil)).ShouldRateLimit(t.Context(),
		&ratelimitv3.RateLimitRequest{Domain: "mesh", HitsAddend: 3, Descriptors: request("pdftalk.ingest", tenant)})
	if err != nil || decision(got) != "RATE_LIMITED" {
		t.Fatalf("ShouldRateLimit() = %v, %v, want RATE_LIMITED", got, err)
	}
	if _, text := s.get(t, "/metrics"); !strings.Contains(text, `ratelimit_decisions_total{answer="over_limit",`+
		`cause="cost_above_max",domain="mesh",endpoint_id="pdftalk.ingest",reason="RATE_LIMITED"} 1`) ||
		!strings.Contains(text, `ratelimit_rpcs_total{code="OK"} 1`) {
		t.Errorf("metrics do not count the request:\n%s", text)
	}
	s.awaitLog(t, map[string]any{"level": "warn", "message": "request denied", "cause": "cost_above_max"})
}

// A reload tells every part which endpoints there are: the emergency limiter has a bucket for a new one.
func TestServe_ConfiguresNewEndpoints(t *testing.T) {
	path := policyFile(t, mesh)
	s := startServe(t, nil, "--policies", path, "--redis", "redis://"+deadAddress(t), "--breaker-failures", "1")
	s.awaitLog(t, map[string]any{"message": "breaker moved", "to": "open"})
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(mesh, "resumint.tailor", "brand.new")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.awaitLog(t, map[string]any{"message": "policies reloaded", "outcome": "installed"})
	mustDecide(t, dial(t, s.grpc, nil), "brand.new", tenant, "CIRCUIT_OPEN")
}

func TestServe_ToleratesAsManyFailuresAsItIsTold(t *testing.T) {
	s := startServe(t, nil, "--policies", policyFile(t, mesh), "--redis", "redis://"+deadAddress(t),
		"--breaker-failures", "1000000")
	s.awaitMetric(t, "ratelimit_breaker_failures", 6) // more than the default
	mustDecide(t, dial(t, s.grpc, nil), "resumint.tailor", tenant, "REDIS_CONNECTION_ERROR")
}

// A password that was wrong at first is read again for every connection, and the quarantine ends on proof or not.
func TestServe_ReadsThePasswordFromItsFileAnew(t *testing.T) {
	const first, second = "pa55word-1-Zx81", "pa55word-2-Zx81"
	redis := redistest.Start(t, redistest.Config{
		Password: second, Args: []string{"--user", "limiter", "on", ">" + first, "~*", "&*", "+@all"},
	})
	for flag, reason := range map[string]string{"--breaker-early-end": "ALLOWED", "--no-breaker-early-end": "CIRCUIT_OPEN"} {
		file := filepath.Join(t.TempDir(), "password")
		write := func(text string) {
			t.Helper()
			if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(second)
		s := startServe(t, nil, "--policies", policyFile(t, mesh), "--redis", "redis://"+redis.Addr(),
			"--redis-username", "limiter", "--redis-password-file", file, "--budget", "2s",
			"--breaker-failures", "1", "--breaker-early-end-after", "1ms", flag)
		s.awaitLog(t, map[string]any{"message": "breaker moved", "to": "open", "cause": "auth"})
		write(first)
		s.awaitMetric(t, "ratelimit_store_lanes_connected", 2)
		if reason == "ALLOWED" {
			s.awaitLog(t, map[string]any{"message": "breaker moved", "to": "half_open", "trigger": "proof"})
		}
		mustDecide(t, dial(t, s.grpc, nil), "resumint.tailor", flag, reason)
		s.search(t, first, second)
	}
}

func TestServe_KeepsThePasswordOfRedisToItself(t *testing.T) {
	const password = "pa55word-Zx81"
	redis := redistest.Start(t, redistest.Config{Password: password})
	s := startServe(t, []string{"RATELIMIT_REDIS_PASSWORD=" + password},
		"--policies", policyFile(t, mesh), "--redis", "redis://"+redis.Addr(), "--budget", "2s")
	conn := dial(t, s.grpc, nil)
	mustDecide(t, conn, "pdftalk.ingest", tenant, "ALLOWED")
	wrong := startServe(t, []string{"RATELIMIT_REDIS_PASSWORD=wrong-" + password},
		"--policies", policyFile(t, mesh), "--redis", "redis://"+redis.Addr(), "--breaker-failures", "1")
	wrong.awaitLog(t, map[string]any{"message": "breaker moved", "to": "open", "cause": "auth"})
	s.search(t, password, tenant)
	wrong.search(t, password, tenant)
}

// Requests go on until the health check says that the service goes away, as an Envoy's do; none may fail.
func TestServe_LosesNoRequestOnSIGTERM(t *testing.T) {
	s := startServe(t, nil, "--policies", policyFile(t, mesh), "--drain-delay", "1s")
	conn := dial(t, s.grpc, nil)
	mustDecide(t, conn, "elsewhere", tenant, "ALLOWED")
	draining, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for draining.Err() == nil {
				if _, err := ask(context.Background(), conn, "elsewhere", tenant); err != nil {
					t.Errorf("a request is lost: %v", err)
					return
				}
			}
		})
	}
	if err := s.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	health := grpc_health_v1.NewHealthClient(conn)
	s.await(t, "NOT_SERVING", func(ctx context.Context) error {
		got, err := health.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		if err == nil && got.GetStatus() != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
			err = fmt.Errorf("health is %v", got.GetStatus())
		}
		return err
	})
	if code, _ := s.get(t, "/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("GET /readyz = %d while draining, want 503", code)
	}
	mustDecide(t, conn, "elsewhere", tenant, "ALLOWED")
	stop()
	clients.Wait()
	s.exited(t)
}

// A request in flight when the signal comes is answered, here after the budget, by the table. A health watch that
// lasts for ever does not hold up the stop.
func TestServe_FinishesRequestsInFlight(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connections open, and nobody ever answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	s := startServe(t, nil, "--policies", policyFile(t, mesh), "--redis", "redis://"+silent.Addr().String(),
		"--budget", "2s", "--breaker-failures", "1000000", "--shutdown-timeout", "30s")
	conn := dial(t, s.grpc, nil)
	watch, err := grpc_health_v1.NewHealthClient(conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	began := time.Now()
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() {
		_, err := ask(context.Background(), conn, "pdftalk.ingest", tenant)
		answered <- err
	})
	s.await(t, "a request in flight", func(context.Context) error {
		if _, body := s.get(t, "/state"); !strings.Contains(body, `"decisions_in_flight": 1`) {
			return fmt.Errorf("/state = %s", body)
		}
		return nil
	})
	select {
	case err := <-answered:
		t.Fatalf("the request is answered before the budget ends: %v", err)
	default:
	}
	if err := s.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; status.Code(err) != codes.FailedPrecondition {
		t.Errorf("the request in flight is answered %v, want FAILED_PRECONDITION", err)
	}
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("the request in flight is answered after %v, want it to use its budget", took)
	}
	s.exited(t)
	if cut := s.log.find(map[string]any{"message": "requests in flight are cut off"}); len(cut) > 0 {
		t.Error("the stop waited for its hard cap")
	}
}

func TestServe_StopsAtOnceOnASecondSignal(t *testing.T) {
	s := startServe(t, nil, "--policies", policyFile(t, mesh), "--drain-delay", "1h")
	if err := s.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.awaitLog(t, map[string]any{"message": "draining"})
	if err := s.Signal(syscall.SIGHUP); err != nil { // is not meant to stop anything
		t.Fatal(err)
	}
	if code, _ := s.get(t, "/healthz"); code != http.StatusOK {
		t.Errorf("GET /healthz = %d while draining, want 200", code)
	}
	if err := s.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	s.exited(t)
}

func TestServe_ListensOnAUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	flags := []string{"--policies", policyFile(t, mesh), "--grpc", "unix:" + path}
	first := startServe(t, nil, flags...)
	mustDecide(t, dial(t, "unix:"+path, nil), "pdftalk.ingest", tenant, "ALLOWED")
	if got := ratelimit(t, append([]string{"serve", "--admin", "127.0.0.1:0"}, flags...)...); got.code != 1 ||
		!strings.Contains(got.errOut, "another process listens") {
		t.Errorf("a second server on the socket: exit code %d, stderr %q", got.code, got.errOut)
	}
	if err := first.Kill(); err != nil { // leaves the socket behind
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Fatal(err)
	}
	startServe(t, nil, flags...)
	mustDecide(t, dial(t, "unix:"+path, nil), "pdftalk.ingest", tenant, "ALLOWED")
}

func TestServe_RemovesNoFileThatIsNoSocket(t *testing.T) {
	policies := policyFile(t, mesh)
	got := ratelimit(t, "serve", "--policies", policies, "--admin", "127.0.0.1:0", "--grpc", "unix:"+policies)
	if got.code != 1 || !strings.Contains(got.errOut, "--grpc") {
		t.Errorf("exit code %d, stderr %q", got.code, got.errOut)
	}
	if _, err := os.Stat(policies); err != nil {
		t.Error(err)
	}
}

func TestServe_SpeaksMutualTLSAndRotatesCertificates(t *testing.T) {
	certs, next := redistest.NewCertificates(t), redistest.NewCertificates(t)
	dir := t.TempDir()
	cert, key, ca := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")
	install := func(c *redistest.Certificates) {
		t.Helper()
		for to, from := range map[string]string{cert: c.ServerCertFile, key: c.ServerKeyFile, ca: c.CAFile} {
			text, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	install(certs)
	s := startServe(t, nil, "--policies", policyFile(t, mesh),
		"--grpc-cert", cert, "--grpc-key", key, "--grpc-client-ca", ca)
	mustDecide(t, dial(t, s.grpc, credentials.NewTLS(certs.ClientConfig(t))), "elsewhere", tenant, "ALLOWED")

	anonymous := certs.ClientConfig(t)
	anonymous.Certificates = nil
	for name, creds := range map[string]credentials.TransportCredentials{
		"without a certificate": credentials.NewTLS(anonymous), "in plain text": nil,
	} {
		if _, err := ask(t.Context(), dial(t, s.grpc, creds), "elsewhere", tenant); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v, want UNAVAILABLE", name, err)
		}
	}

	if err := os.WriteFile(key, []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustDecide(t, dial(t, s.grpc, credentials.NewTLS(certs.ClientConfig(t))), "elsewhere", tenant, "ALLOWED")
	s.awaitLog(t, map[string]any{"level": "error", "message": "new certificates cannot be used, the old ones stay"})
	install(next)
	mustDecide(t, dial(t, s.grpc, credentials.NewTLS(next.ClientConfig(t))), "elsewhere", tenant, "ALLOWED")
	if _, err := ask(t.Context(), dial(t, s.grpc, credentials.NewTLS(certs.ClientConfig(t))), "elsewhere", tenant); err == nil {
		t.Error("the old client certificate is still let in")
	}
}
