package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/process"
)

// The lessons are what a person is told to type; they must show what they promise. This runs them as they are
// printed.
func TestStack_LessonsHold(t *testing.T) {
	for _, c := range []struct{ name, redis string }{
		{"embedded store", ""}, {"redis", "redis-server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			decisions := new(buffer)
			s := start(t, c.redis, decisions)
			lessons, err := s.lessons()
			if err != nil {
				t.Fatal(err)
			}
			shows(t, lessons[0], `HTTP/1.1 200 `, `x-ratelimit-remaining: 12`)
			shows(t, lessons[0], `HTTP/1.1 200 `, `x-ratelimit-remaining: 4`)
			shows(t, lessons[0], `HTTP/1.1 429 `, `retry-after: \d+`, `"rate limit exceeded"`)
			shows(t, lessons[1], `HTTP/1.1 200 `, `read 8 page`)
			shows(t, lessons[2], `^(200 ){10}`, `429`)
			shows(t, lessons[3], `HTTP/1.1 503 `, `\{"detail": "rate limiter unavailable"\}`)
			shows(t, lessons[4], `200`, `429`)
			shows(t, lessons[5], `HTTP/1.1 200 `, `x-ratelimit-remaining`)
			decisions.await(t, "RATE_LIMITED", "/pdftalk/ingest 503", "/resumint/tailor 200")
		})
	}
}

func TestStack_StopLeavesNothing(t *testing.T) {
	s := start(t, "redis-server", new(buffer))
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	for _, p := range s.children {
		if p.Exited() == nil {
			t.Errorf("%s still runs", p.Name())
		}
	}
	for _, addr := range []string{s.ports.Edge, s.ports.GRPC, s.ports.Redis, s.ports.PDFTalk, s.ports.Resumint} {
		if process.Listens(addr)(t.Context()) == nil {
			t.Errorf("something still listens on %s", addr)
		}
	}
	s.children, s.backends, s.logs = nil, nil, nil // All ended: nothing left for the test's end.
}

// A trial that cannot start says why, in the words of the program that failed, and leaves nothing behind.
func TestStartStack_TellsWhatFailed(t *testing.T) {
	cfg := config(t, "", new(buffer))
	cfg.Policies = filepath.Join(t.TempDir(), "absent.yaml")
	s, err := startStack(t.Context(), cfg)
	if err == nil {
		t.Fatal(s.stop(), "a trial without policies starts")
	}
	for _, want := range []string{"ratelimit", "absent.yaml"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

func TestStack_WaitTellsWhoDied(t *testing.T) {
	s := start(t, "", new(buffer))
	if err := s.store.Kill(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := s.wait(ctx); err == nil || !strings.Contains(err.Error(), "ratelimit") {
		t.Errorf("wait = %v, want an error that names ratelimit", err)
	}
}

func start(t *testing.T, redis string, decisions *buffer) *stack {
	t.Helper()
	s, err := startStack(t.Context(), config(t, redis, decisions))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func config(t *testing.T, redis string, decisions *buffer) stackConfig {
	t.Helper()
	root, err := process.Root()
	if err != nil {
		t.Fatal(err)
	}
	envoy, err := process.Envoy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "ratelimit")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/ratelimit")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the service: %v\n%s", err, out)
	}
	return stackConfig{
		Dir: dir, Envoy: envoy, RateLimit: program, Redis: redis,
		Policies: filepath.Join(root, "envoy", "policies"), Decisions: decisions,
	}
}

// shows runs the lesson's command in a shell, as a person would.
func shows(t *testing.T, l lesson, patterns ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "sh", "-c", l.command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", l.command, err, out)
	}
	for _, pattern := range patterns {
		if !regexp.MustCompile(pattern).Match(out) {
			t.Errorf("%s\nwas to show %s, showed %q\n%s", l.see, pattern, pattern, out)
		}
	}
}

// buffer is a bytes.Buffer that a child may still write to while the test reads.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// await waits until every text of wants was written.
func (b *buffer) await(t *testing.T, wants ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	err := process.Await(ctx, "decisions to be shown", func(context.Context) error {
		for _, want := range wants {
			if !strings.Contains(b.String(), want) {
				return fmt.Errorf("no %q in:\n%s", want, b)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
