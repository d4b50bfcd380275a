package compose_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/process"
)

// wait bounds everything awaited here: containers on a busy machine with two cores take many seconds.
const wait = 2 * time.Minute

// All set-ups share one engine, and everything but Redis: each one takes the place of the one before.
func TestCompose_DecidesInContainers(t *testing.T) {
	p := newProject(t)
	p.up(t)
	p.acme, p.globex = p.token(t, "acme"), p.token(t, "globex")
	t.Run("one Redis", p.decidesAloneAndWithout)
	t.Run("ha", p.failsOver)
	t.Run("cluster", p.decidesInCluster)
}

func (p *project) decidesAloneAndWithout(t *testing.T) {
	p.await(t, "the service to report itself healthy", func(ctx context.Context) error {
		return p.engine.healthy(ctx, "ratelimit")
	})
	p.awaitDecisions(t, p.acme)
	p.check(t, request{path: "/pdftalk/ingest", token: p.globex, pages: 1}, http.StatusOK)

	p.compose(t, "pause", "redis")
	p.check(t, request{path: "/pdftalk/ingest", token: p.globex, pages: 1}, http.StatusServiceUnavailable)
	p.check(t, request{path: "/resumint/tailor"}, http.StatusOK)

	p.compose(t, "unpause", "redis")
	p.await(t, "the service to find Redis again", func(ctx context.Context) error {
		return p.wants(ctx, request{path: "/pdftalk/ingest", token: p.globex, pages: 1}, http.StatusOK)
	})
}

// awaitDecisions waits until Redis decides about a tenant whose bucket is full: only Redis admits anything to this
// endpoint. Then the limit must hold.
func (p *project) awaitDecisions(t *testing.T, token string) {
	t.Helper()
	p.await(t, "Redis to decide", func(ctx context.Context) error {
		return p.wants(ctx, request{path: "/pdftalk/ingest", token: token, pages: 1}, http.StatusOK)
	})
	p.check(t, request{path: "/pdftalk/ingest", token: token, pages: 20}, http.StatusTooManyRequests)
}

// project is docker-compose.yaml with an engine, on ports of this test's own.
type project struct {
	engine  *engine
	command []string
	root    string
	env     []string
	url     string
	options []string // of every compose command
	// Tokens of tenants.
	acme, globex string
}

func newProject(t *testing.T) *project {
	t.Helper()
	root, err := process.Root()
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := process.FreeAddresses(2)
	if err != nil {
		t.Fatal(err)
	}
	p := &project{command: composeCommand(t), root: root, url: "http://" + addrs[0]}
	p.env = append(os.Environ(), "COMPOSE_PROJECT_NAME=ratelimit-test", "EDGE_PORT="+port(t, addrs[0]),
		"ADMIN_PORT="+port(t, addrs[1]))
	p.engine = newEngine(t)
	if p.engine.host != "" {
		p.env = append(p.env, "DOCKER_HOST="+p.engine.host)
	}
	if p.engine.own {
		p.standIn(t)
	}
	return p
}

// composeCommand is the compose program, of which there are two generations.
func composeCommand(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("docker-compose"); err == nil {
		return []string{"docker-compose"}
	}
	if err := exec.CommandContext(t.Context(), "docker", "compose", "version").Run(); err == nil {
		return []string{"docker", "compose"}
	}
	t.Fatal("this test needs docker-compose (Debian: apt-get install docker-compose)")
	return nil
}

// standIn makes every image from programs of this machine: nothing is pulled.
func (p *project) standIn(t *testing.T) {
	t.Helper()
	p.env = append(p.env, "TARGET_SUFFIX=-prebuilt", "DOCKER_BUILDKIT=0", "COMPOSE_DOCKER_CLI_BUILD=0")
	envoy, err := process.Envoy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.engine.importImage(t, "envoyproxy/envoy:v1.40.0", envoy)
	var programs []string
	for _, program := range []string{"redis-server", "redis-cli", "sh", "awk", "sleep"} {
		programs = append(programs, lookPath(t, program))
	}
	p.engine.importImage(t, "redis:8-alpine", programs...)
	for program, source := range map[string]string{"ratelimit": "./cmd/ratelimit", "trial": "./test/trial"} {
		build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(".cache", "bin", program), source)
		build.Dir = p.root
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", source, err, out)
		}
	}
}

func lookPath(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%v (Debian: apt-get install redis-server)", err)
	}
	return path
}

func (p *project) up(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.output(context.WithoutCancel(t.Context()), "logs", "--no-color"))
		}
		p.options = []string{"--profile", "ha", "--profile", "cluster"}
		if out, err := p.run(context.WithoutCancel(t.Context()), "down", "--volumes", "--timeout", "30"); err != nil {
			t.Errorf("compose down: %v\n%s", err, out)
		}
	})
	p.compose(t, "up", "--detach", "--build")
}

// compose runs one compose command, which must succeed, and returns what it printed.
func (p *project) compose(t *testing.T, args ...string) string {
	t.Helper()
	out, err := p.run(t.Context(), args...)
	if err != nil {
		t.Fatalf("compose %v: %v\n%s", args, err, out)
	}
	return out
}

func (p *project) output(ctx context.Context, args ...string) string {
	out, err := p.run(ctx, args...)
	return fmt.Sprint(out, err)
}

func (p *project) run(ctx context.Context, args ...string) (string, error) {
	args = slices.Concat(p.command[1:], p.options, args)
	cmd := exec.CommandContext(ctx, p.command[0], args...)
	cmd.Dir, cmd.Env = p.root, p.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// token asks the file's own key maker, as its comment tells a person to.
func (p *project) token(t *testing.T, tenant string) string {
	t.Helper()
	out := p.compose(t, "run", "--rm", "-T", "keys", "token", "--dir", "/keys", "--tenant", tenant)
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "ey") {
			return line
		}
	}
	t.Fatalf("no token in %q", out)
	return ""
}

type request struct {
	path, token string
	pages       int
}

func (p *project) await(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	if err := process.Await(ctx, what, check); err != nil {
		t.Fatal(err)
	}
}

func (p *project) check(t *testing.T, r request, status int) {
	t.Helper()
	if err := p.wants(t.Context(), r, status); err != nil {
		t.Error(err)
	}
}

// wants sends r and compares the status of its answer.
func (p *project) wants(ctx context.Context, r request, status int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+r.path, nil)
	if err != nil {
		return err
	}
	if r.token != "" {
		req.Header.Set("authorization", "Bearer "+r.token)
	}
	if r.pages != 0 {
		req.Header.Set("x-pages", fmt.Sprint(r.pages))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(resp.Body)
	err = errors.Join(err, resp.Body.Close())
	if resp.StatusCode != status {
		err = errors.Join(err, fmt.Errorf("%s: %d %s, want %d", r.path, resp.StatusCode, body, status))
	}
	return err
}

func port(t *testing.T, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return port
}
