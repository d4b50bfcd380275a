package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHelp_Teaches(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--help"}, []string{"serve", "check", "explain", "version", "ratelimit serve --policies"}},
		{[]string{"serve", "--help"}, []string{
			"$RATELIMIT_REDIS_PASSWORD_FILE", "RATELIMIT_REDIS_PASSWORD", "--budget", "20ms", "SIGHUP", "rediss://",
			"--deny", "--[no-]breaker-early-end", "--[no-]deny-cache", "$RATELIMIT_GRPC",
		}},
		{[]string{"check", "--help"}, []string{"FILE", "exit code 1", "ratelimit check policies/"}},
		{[]string{"explain", "--help"}, []string{"KEY=VALUE", "--domain", "ratelimit explain"}},
	} {
		got := ratelimit(t, c.args...)
		if got.code != 0 || got.errOut != "" {
			t.Errorf("%v: exit code %d, stderr %q", c.args, got.code, got.errOut)
		}
		for _, want := range c.want {
			if !strings.Contains(got.out, want) {
				t.Errorf("%v: help does not say %q:\n%s", c.args, want, got.out)
			}
		}
	}
}

func TestServe_HasNoFlagForThePassword(t *testing.T) {
	got := ratelimit(t, "serve", "--policies", "x", "--redis-password", "s3cret")
	if got.code != 2 || !strings.Contains(got.errOut, "--redis-password") {
		t.Errorf("exit code %d, stderr %q, want the flag to be unknown", got.code, got.errOut)
	}
}

func TestServe_NamesTheFlagAtFault(t *testing.T) {
	policies := policyFile(t, mesh)
	for name, c := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"no policies":      {[]string{}, 2, []string{"--policies"}},
		"no duration":      {[]string{"--policies", policies, "--budget", "20"}, 2, []string{"--budget"}},
		"no such mode":     {[]string{"--policies", policies, "--deny", "maybe"}, 2, []string{"--deny", "over_limit"}},
		"several at once":  {[]string{"--policies", policies, "--budget", "1us", "--redis-lanes", "0", "--breaker-failures", "0"}, 2, []string{"--budget", "--redis-lanes", "--breaker-failures"}},
		"half a pair":      {[]string{"--policies", policies, "--grpc-cert", "x"}, 2, []string{"--grpc-key"}},
		"redis left out":   {[]string{"--policies", policies, "--redis-username", "x"}, 2, []string{"--redis"}},
		"not a redis URL":  {[]string{"--policies", policies, "--redis", "http://u:s3cret@h"}, 2, []string{"--redis"}},
		"password in URL":  {[]string{"--policies", policies, "--redis", "redis://u:s3cret@h"}, 2, []string{"--redis", "--redis-password-file"}},
		"no such policies": {[]string{"--policies", "/nowhere.yaml"}, 1, []string{"--policies", "/nowhere.yaml"}},
		"no such key":      {[]string{"--policies", policies, "--grpc-cert", "/no.crt", "--grpc-key", "/no.key"}, 1, []string{"--grpc-cert", "/no.crt"}},
		"no such address":  {[]string{"--policies", policies, "--grpc", "127.0.0.1:0", "--admin", "nowhere"}, 1, []string{"--admin"}},
	} {
		got := ratelimit(t, append([]string{"serve"}, c.args...)...)
		if got.code != c.code {
			t.Errorf("%s: exit code %d, want %d", name, got.code, c.code)
		}
		for _, want := range c.want {
			if !strings.Contains(got.errOut, want) {
				t.Errorf("%s: stderr %q does not say %q", name, got.errOut, want)
			}
		}
		if strings.Contains(got.errOut, "s3cret") {
			t.Errorf("%s: stderr %q shows the password", name, got.errOut)
		}
	}
}

func TestCheck_ShowsWhatWouldBeEnforced(t *testing.T) {
	got := ratelimit(t, "check", policyFile(t, mesh))
	if got.code != 0 || got.errOut != "" {
		t.Fatalf("exit code %d, stderr %q", got.code, got.errOut)
	}
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines, want a heading and two policies:\n%s", len(lines), got.out)
	}
	for i, want := range [][]string{
		{"DOMAIN", "ENDPOINT", "LIMIT", "STORE AWAY"},
		{"mesh", "pdftalk.ingest", "endpoint_id=pdftalk.ingest, tenant=*", "2 per 1h", "fail_closed", "1 to 2", "mesh.yaml:3"},
		{"mesh", "resumint.tailor", "1/h, burst 5", "fail_open at 3/h per process", "1 to 5", "mesh.yaml:8"},
	} {
		for _, w := range want {
			if !strings.Contains(lines[i], w) {
				t.Errorf("line %q does not say %q", lines[i], w)
			}
		}
	}
}

// Ten mistakes in one file are all found at once, each at its place.
func TestCheck_FindsEveryMistakeAtOnce(t *testing.T) {
	path := policyFile(t, `domain: mesh
policies:
  - endpoint_id: Bad Name
    descriptor: [{key: a, value: 1}]
    token_bucket: {rate: 10, burst: 0}
    fail_mode: maybe
    policy_version: 0
    colour: red
  - endpoint_id: twice
    descriptor: [{key: a, value: x}]
    sliding_window: {limit: 5, window: 60}
    fail_mode: fail_closed
    fallback_rate_per_process: 5/s
    policy_version: 1
  - endpoint_id: twice
    descriptor: [{key: b}]
    token_bucket: {rate: 10/s, burst: 5}
    fail_mode: fail_open
    policy_version: 1
`)
	got := ratelimit(t, "check", path)
	if got.code != 1 || got.out != "" {
		t.Errorf("exit code %d, stdout %q", got.code, got.out)
	}
	lines := strings.Split(strings.TrimSpace(got.errOut), "\n")
	if len(lines) < 10 {
		t.Errorf("%d mistakes, want at least 10:\n%s", len(lines), got.errOut)
	}
	for _, place := range []string{":3:", ":4:", ":5:", ":6:", ":7:", ":8:", ":11:", ":13:", ":15:"} {
		if !strings.Contains(got.errOut, path+place) {
			t.Errorf("no mistake at %s:\n%s", place, got.errOut)
		}
	}
}

func TestCheck_TakesFilesTogether(t *testing.T) {
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")}
	for _, path := range paths {
		if err := os.WriteFile(path, []byte(mesh), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := ratelimit(t, "check", paths[0], paths[1]); got.code != 1 || !strings.Contains(got.errOut, "b.yaml:3") {
		t.Errorf("exit code %d, stderr %q, want the second file to contradict the first", got.code, got.errOut)
	}
	if got := ratelimit(t, "check"); got.code != 2 {
		t.Errorf("without a file: exit code %d, want 2", got.code)
	}
}

func TestExplain_TellsWhichPolicyAndWhyNotTheOthers(t *testing.T) {
	policies := policyFile(t, mesh)
	got := ratelimit(t, "explain", "--policies", policies, "--domain", "mesh", "endpoint_id=resumint.tailor", "tenant=acme=1")
	if got.code != 0 {
		t.Fatalf("exit code %d, stderr %q", got.code, got.errOut)
	}
	for _, want := range []string{
		"governed by", "resumint.tailor", "mesh.yaml:8", "1/h, burst 5", "rl:v1:{", "}:resumint.tailor:1",
		"fail_open at 3/h per process", "not by", "pdftalk.ingest", "entry 1 must be endpoint_id=pdftalk.ingest",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("explanation does not say %q:\n%s", want, got.out)
		}
	}
	if strings.Contains(got.out, "acme") {
		t.Errorf("explanation shows the tenant:\n%s", got.out)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"unmatched":      {[]string{"--domain", "mesh", "endpoint_id=other"}, 1, "unmatched"},
		"no such domain": {[]string{"--domain", "edge", "endpoint_id=other"}, 1, "mesh"},
		"no entry":       {[]string{"--domain", "mesh", "other"}, 2, "KEY=VALUE"},
	} {
		got := ratelimit(t, append([]string{"explain", "--policies", policies}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.errOut, c.want) {
			t.Errorf("%s: exit code %d, stderr %q, want %d and %q", name, got.code, got.errOut, c.code, c.want)
		}
	}
}

func TestVersion_SaysWhatWasBuilt(t *testing.T) {
	if got := ratelimit(t, "version"); got.code != 0 || !strings.HasPrefix(got.out, "ratelimit ") ||
		!strings.Contains(got.out, "go1.") {
		t.Errorf("exit code %d, stdout %q", got.code, got.out)
	}
}
