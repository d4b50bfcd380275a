package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/honestlimit/ratelimit/internal/process"
)

// asProgram in the environment makes the test binary be the program under test. So the program has what the tests are
// built with, such as the race detector, and a cached result is never of another program.
const asProgram = "TEST_BINARY_IS_RATELIMIT"

// program is the environment that it takes. The race detector makes every exit wait for a second unless told not to.
func program() []string { return []string{asProgram + "=1", "GORACE=atexit_sleep_ms=0"} }

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// patience is how long a condition may take to come true. A healthy machine needs milliseconds.
const patience = 20 * time.Second

// mesh is the policy file that the tests serve.
const mesh = `domain: mesh
policies:
  - endpoint_id: pdftalk.ingest
    descriptor: [{key: endpoint_id, value: pdftalk.ingest}, {key: tenant}]
    sliding_window: {limit: 2, window: 1h}
    fail_mode: fail_closed
    policy_version: 1
  - endpoint_id: resumint.tailor
    descriptor: [{key: endpoint_id, value: resumint.tailor}, {key: tenant}]
    token_bucket: {rate: 1/h, burst: 5}
    fail_mode: fail_open
    fallback_rate_per_process: 3/h
    policy_version: 1
`

func policyFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mesh.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// result is what one run of the program left behind.
type result struct {
	code        int
	out, errOut string
}

func ratelimit(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), program()...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// transcript keeps what a process prints.
type transcript struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *transcript) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

func (j *transcript) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// find returns the lines that have these fields.
func (j *transcript) find(fields map[string]any) []map[string]any {
	var found []map[string]any
	for text := range strings.Lines(j.text()) {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) != nil {
			continue
		}
		has := true
		for k, v := range fields {
			has = has && line[k] == v
		}
		if has {
			found = append(found, line)
		}
	}
	return found
}

// server is a running serve.
type server struct {
	*process.Process
	log         *transcript
	grpc, admin string
}

// startServe starts serve on ports of the system's choice, unless flags say otherwise, and waits until it listens.
func startServe(t *testing.T, env []string, flags ...string) *server {
	t.Helper()
	args := append([]string{
		"serve", "--grpc", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--drain-delay", "0s", "--log-level", "debug",
	}, flags...)
	s := &server{log: &transcript{}}
	var err error
	s.Process, err = process.Start(process.Config{
		Name: "serve", Path: os.Args[0], Args: args, Env: append(env, program()...), Stdout: s.log, Stderr: s.log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if strings.Contains(s.log.text(), "DATA RACE") {
			t.Error("the server has a data race")
		}
		if t.Failed() {
			t.Logf("log:\n%s", s.log.text())
		}
	})
	line := s.awaitLog(t, map[string]any{"message": "serving"})
	s.grpc, s.admin = line["grpc"].(string), "http://"+line["admin"].(string)
	return s
}

func (s *server) awaitLog(t *testing.T, fields map[string]any) map[string]any {
	t.Helper()
	var found []map[string]any
	s.await(t, fmt.Sprintf("a line with %v", fields), func(context.Context) error {
		if found = s.log.find(fields); len(found) == 0 {
			return errors.New("no such line")
		}
		return nil
	})
	return found[0]
}

// awaitMetric waits until a metric without labels is at least as high.
func (s *server) awaitMetric(t *testing.T, name string, least float64) {
	t.Helper()
	s.await(t, name, func(context.Context) error {
		_, text := s.get(t, "/metrics")
		for line := range strings.Lines(text) {
			rest, ok := strings.CutPrefix(line, name+" ")
			if value, err := strconv.ParseFloat(strings.TrimSpace(rest), 64); ok && err == nil && value >= least {
				return nil
			}
		}
		return fmt.Errorf("%s is below %v", name, least)
	})
}

func (s *server) await(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.AwaitReady(ctx, check); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// exited waits until the server is gone, and checks that it went in peace.
func (s *server) exited(t *testing.T) {
	t.Helper()
	select {
	case <-s.Done():
	case <-time.After(patience):
		t.Fatal("the server does not stop")
	}
	if err := s.Exited(); !strings.Contains(err.Error(), "exit status 0") {
		t.Error(err)
	}
}

// get fetches a page of the admin port.
func (s *server) get(t *testing.T, path string) (code int, body string) {
	t.Helper()
	resp, err := http.Get(s.admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// dial opens a connection as Envoy would. target is an address, or unix:PATH.
func dial(t *testing.T, target string, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// request is what Envoy sends for a request of tenant to endpoint.
func request(endpoint, tenant string) []*commonv3.RateLimitDescriptor {
	return []*commonv3.RateLimitDescriptor{{Entries: []*commonv3.RateLimitDescriptor_Entry{
		{Key: "endpoint_id", Value: endpoint}, {Key: "tenant", Value: tenant},
	}}}
}

func ask(ctx context.Context, conn *grpc.ClientConn, endpoint, tenant string) (*ratelimitv3.RateLimitResponse, error) {
	return ratelimitv3.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx,
		&ratelimitv3.RateLimitRequest{Domain: "mesh", Descriptors: request(endpoint, tenant)})
}

func decision(r *ratelimitv3.RateLimitResponse) any {
	return r.GetDynamicMetadata().AsMap()["decision"]
}

// mustDecide asks once, and checks the reason.
func mustDecide(t *testing.T, conn *grpc.ClientConn, endpoint, tenant, reason string) *ratelimitv3.RateLimitResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := ask(ctx, conn, endpoint, tenant)
	if err != nil {
		t.Fatal(err)
	}
	if decision(got) != reason {
		t.Errorf("%s is decided %v, want %s", endpoint, decision(got), reason)
	}
	return got
}
