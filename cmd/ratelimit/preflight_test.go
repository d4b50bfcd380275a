package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/redistest"
)

// brief makes preflight measure little, and not care for this machine's speed.
var brief = []string{"--calls", "10", "--budget", "10s"}

func examine(t *testing.T, args ...string) result {
	t.Helper()
	return ratelimit(t, append(append([]string{"preflight"}, brief...), args...)...)
}

func TestPreflight_ExitsByTheWorst(t *testing.T) {
	server := redistest.Start(t, redistest.Config{Args: []string{
		"--maxmemory", "64mb", "--maxmemory-policy", "volatile-ttl",
	}, Password: "0p3rator"})
	server.SetUser("ratelimit", "s3cret", "~rl:*", "+evalsha", "+script|load", "+ping", "+role", "+time", "+get", "+set")
	dir := t.TempDir()
	ours, admin := filepath.Join(dir, "ours"), filepath.Join(dir, "admin")
	writeSecret(t, ours, "s3cret\n")
	writeSecret(t, admin, "0p3rator\n")
	account := []string{"--redis", server.URL(), "--redis-username", "ratelimit", "--redis-password-file", ours}
	withAdmin := append([]string{"--admin-password-file", admin}, account...)

	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"all well", withAdmin, 0, []string{"standalone, 1 server", "pass  acl", "0 warn, 0 fail, 0 skip"}},
		{"all well, and no warning to mind", append([]string{"--strict"}, withAdmin...), 0, nil},
		{"no admin", account, 0, []string{"skip  persistence", "not permitted: our account may not send SLOWLOG GET"}},
		{"nobody is there", []string{"--redis", "redis://127.0.0.1:1"}, 1, []string{"FAIL  reachable", "-> "}},
		{"we are not let in", []string{"--redis", server.URL(), "--redis-username", "ratelimit", "--redis-password-file", admin}, 1, []string{"does not let our account in: WRONGPASS"}},
	} {
		got := examine(t, c.args...)
		if got.code != c.code {
			t.Errorf("%s: exit code %d, want %d\n%s%s", c.name, got.code, c.code, got.out, got.errOut)
		}
		for _, want := range c.says {
			if !strings.Contains(got.out, want) {
				t.Errorf("%s: does not say %q:\n%s", c.name, want, got.out)
			}
		}
		for _, password := range []string{"s3cret", "0p3rator"} {
			if strings.Contains(got.out+got.errOut, password) {
				t.Errorf("%s: shows a password:\n%s%s", c.name, got.out, got.errOut)
			}
		}
	}

	server.ACL("ratelimit", "+flushall")
	if got := examine(t, withAdmin...); got.code != 0 || !strings.Contains(got.out, "WARN  acl-excess") {
		t.Errorf("a warning: exit code %d\n%s", got.code, got.out)
	}
	got := examine(t, append([]string{"--strict"}, withAdmin...)...)
	if got.code != 1 || !strings.Contains(got.errOut, "--strict") {
		t.Errorf("a warning with --strict: exit code %d, stderr %q", got.code, got.errOut)
	}
}

func TestPreflight_PrintsJSON(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	got := examine(t, "--json", "--redis", server.URL())
	var report struct {
		Schema       int
		Setup, Worst string
		Servers      []string
		Results      []struct {
			Check, Status, Reason, Remedy string
			Nodes                         []string
		}
	}
	if err := json.Unmarshal([]byte(got.out), &report); err != nil {
		t.Fatalf("%v:\n%s", err, got.out)
	}
	if got.code != 0 || report.Schema != 1 || report.Setup != "standalone" || report.Worst != "warn" {
		t.Errorf("exit code %d, %+v", got.code, report)
	}
	if diff := cmp.Diff([]string{server.Addr()}, report.Servers); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	for _, r := range report.Results {
		if r.Check == "maxmemory" {
			if r.Status != "warn" || r.Reason == "" || r.Remedy == "" || len(r.Nodes) != 1 {
				t.Errorf("%+v", r)
			}
			return
		}
	}
	t.Errorf("nothing is said of maxmemory:\n%s", got.out)
}

func TestPreflight_NamesTheFlagAtFault(t *testing.T) {
	t.Setenv(adminPasswordVariable, "s3cret")
	for name, c := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"nothing to examine": {nil, 2, []string{"--redis"}},
		"not a redis URL":    {[]string{"--redis", "http://u:s3cret@h"}, 2, []string{"--redis"}},
		"several at once": {
			[]string{"--redis", "redis://h", "--budget", "0s", "--outage=-1s", "--timeout", "0s", "--calls", "0", "--decisions=-1"},
			2,
			[]string{"--budget", "--outage", "--timeout", "--calls", "--decisions"},
		},
		"a password twice": {[]string{"--redis", "redis://h", "--admin-password-file", "x"}, 2, []string{"--admin-password-file", adminPasswordVariable}},
		"sentinel flags":   {[]string{"--redis", "redis://h", "--sentinel-username", "x"}, 2, []string{"--sentinel-"}},
		"no such file":     {[]string{"--redis", "cluster://h", "--redis-password-file", "/nowhere"}, 1, []string{"/nowhere"}},
	} {
		got := ratelimit(t, append([]string{"preflight"}, c.args...)...)
		if got.code != c.code || got.out != "" {
			t.Errorf("%s: exit code %d, want %d, stdout %q", name, got.code, c.code, got.out)
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

func TestPreflight_HelpTeaches(t *testing.T) {
	got := ratelimit(t, "preflight", "--help")
	for _, want := range []string{"--admin-username", adminPasswordVariable, "--strict", "Exit code", "sentinel://s1,s2,s3/mymaster"} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("exit code %d, help does not say %q:\n%s", got.code, want, got.out)
		}
	}
}

func writeSecret(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
