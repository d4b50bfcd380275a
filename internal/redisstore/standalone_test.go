package redisstore_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
)

func TestParseURL(t *testing.T) {
	for raw, want := range map[string]redisstore.Target{
		"redis://h":                {Network: "tcp", Address: "h:6379"},
		"redis://h:1":              {Network: "tcp", Address: "h:1"},
		"redis://[::1]:1/2":        {Network: "tcp", Address: "[::1]:1", DB: 2},
		"redis://h/":               {Network: "tcp", Address: "h:6379"},
		"redis://u@h":              {Network: "tcp", Address: "h:6379", Username: "u"},
		"redis://:p%2F%23@h":       {Network: "tcp", Address: "h:6379", Password: "p/#"},
		"redis://u:p@h:1/15":       {Network: "tcp", Address: "h:1", Username: "u", Password: "p", DB: 15},
		"unix:///run/r.sock":       {Network: "unix", Address: "/run/r.sock"},
		"unix://u:p@/run/r.s?db=3": {Network: "unix", Address: "/run/r.s", Username: "u", Password: "p", DB: 3},
	} {
		got, err := redisstore.ParseURL(raw)
		if err != nil || got != want {
			t.Errorf("ParseURL(%q) = %+v, %v, want %+v", raw, got, err, want)
		}
	}
	got, err := redisstore.ParseURL("rediss://h:2")
	if err != nil || got.TLS == nil || got.TLS.ServerName != "h" || got.Address != "h:2" {
		t.Errorf("ParseURL(rediss) = %+v, %v, want TLS for h", got, err)
	}
}

func TestParseURL_ErrorsAreClearAndDiscreet(t *testing.T) {
	for raw, want := range map[string]string{
		"":                        "must start with redis://",
		"localhost:6379":          "must start with redis://",
		"http://u:hunter2@h":      "must start with redis://",
		"redis://":                "names no host",
		"redis://:hunter2@":       "names no host",
		"redis://u:hun/ter2@h":    "percent-encoded",
		"redis://u:hunter2#@h":    "percent-encoded",
		"redis://h/0#hunter2":     "write it as %23",
		"redis://u:hunter2%zz@h":  "percent-encoded",
		"redis://u:hunter2@h:x":   "percent-encoded",
		"redis://u:hunter2@h/abc": "no number from 0 up",
		"redis://h/-1":            "no number from 0 up",
		"redis://h?db=1":          "of which there are none",
		"unix://run/r.sock":       "absolute path",
		"unix:///r.sock?dbx=1":    "other than db",
	} {
		_, err := redisstore.ParseURL(raw)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseURL(%q): %v, want an error with %q", raw, err, want)
		} else if strings.Contains(err.Error(), "hun") {
			t.Errorf("ParseURL(%q) shows the password: %v", raw, err)
		}
	}
}

func TestNewStandalone_ReportsEveryContradiction(t *testing.T) {
	_, err := redisstore.NewStandalone("redis://h", redisstore.Access{
		CAFile: "ca", CertFile: "cert", Password: "hunter2", PasswordFile: "file",
	})
	for _, want := range []string{"TLS is not asked for", "both its certificate and its key", "not both"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

func TestStandalone_Resolve(t *testing.T) {
	ctx := t.Context()
	file := filepath.Join(t.TempDir(), "password")
	s := standalone(t, "redis://a:b@h", redisstore.Access{Username: "u", PasswordFile: file})
	if _, err := s.Resolve(ctx); err == nil || !strings.Contains(err.Error(), "password file") {
		t.Errorf("without the file: %v", err)
	}
	for _, password := range []string{"first", "second with spaces "} {
		if err := os.WriteFile(file, []byte(password+"\r\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := s.Resolve(ctx)
		want := redisstore.Target{Network: "tcp", Address: "h:6379", Username: "u", Password: redisstore.Secret(password)}
		if err != nil || got != want {
			t.Errorf("Resolve() = %+v, %v", got, err)
		}
	}
	if s.String() != "h:6379" {
		t.Errorf("String() = %q", s)
	}
}

func TestStandalone_ReadsCertificatesAnew(t *testing.T) {
	first, second := redistest.NewCertificates(t), redistest.NewCertificates(t)
	s := standalone(t, "rediss://h", redisstore.Access{
		CAFile: first.CAFile, CertFile: first.ClientCertFile, KeyFile: first.ClientKeyFile,
	})
	before, err := s.Resolve(t.Context())
	if err != nil || len(before.TLS.Certificates) != 1 || before.TLS.ServerName != "h" {
		t.Fatalf("Resolve() = %+v, %v", before, err)
	}
	for from, to := range map[string]string{
		second.CAFile: first.CAFile, second.ClientCertFile: first.ClientCertFile, second.ClientKeyFile: first.ClientKeyFile,
	} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	after, err := s.Resolve(t.Context())
	if err != nil || after.TLS.RootCAs.Equal(before.TLS.RootCAs) {
		t.Errorf("after the files were replaced the old CA is trusted (%v)", err)
	}
	if err := os.WriteFile(first.CAFile, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve(t.Context()); err == nil || !strings.Contains(err.Error(), "CA file") {
		t.Errorf("with a broken CA file: %v", err)
	}
}

func TestSecret_NeverShows(t *testing.T) {
	target := redisstore.Target{Address: "h", Password: "hunter2"}
	encoded, err := json.Marshal(target.Password)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{
		fmt.Sprint(target), fmt.Sprintf("%+v", target), fmt.Sprintf("%#v", target),
		fmt.Sprintf("%q", target.Password), fmt.Sprintf("%x", target.Password), string(encoded),
	} {
		if strings.Contains(shown, "hunter2") || strings.Contains(shown, "68756e74657232") {
			t.Errorf("a secret shows: %s", shown)
		}
	}
}
