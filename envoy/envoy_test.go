package envoy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/envoy"
	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/test/token"
)

func TestRender_KeepsWhatIsNotGiven(t *testing.T) {
	written, err := os.ReadFile("envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(written), render(t, envoy.Config{})); diff != "" {
		t.Errorf("rendering nothing changed envoy.yaml (-written +got):\n%s", diff)
	}
}

func TestRender_MovesEveryAddress(t *testing.T) {
	text := render(t, envoy.Config{
		Listen: "127.0.0.1:1001", Admin: "127.0.0.1:1002", RateLimit: "10.0.0.3:1003",
		PDFTalk: "pdf.example:1004", Resumint: "[::1]:1005", KeySet: "/a path/keys.json",
	})
	for _, want := range []string{
		`{address: "127.0.0.1", port_value: 1001}`, `{address: "127.0.0.1", port_value: 1002}`,
		`{address: "10.0.0.3", port_value: 1003}`, `{address: "pdf.example", port_value: 1004}`,
		`{address: "::1", port_value: 1005}`, `filename: "/a path/keys.json"`,
	} {
		if n := strings.Count(text, want); n != 1 {
			t.Errorf("the rendering says %s %d times, want once", want, n)
		}
	}
	for _, gone := range []string{"{address: ratelimit,", "port_value: 8080", "port_value: 10000", "/etc/envoy/keys"} {
		if strings.Contains(text, gone) {
			t.Errorf("the rendering still says %s", gone)
		}
	}
}

func TestConfig_ValidateNamesEveryFault(t *testing.T) {
	err := envoy.Config{
		Listen: "nowhere", Admin: ":9901", RateLimit: "host:0", PDFTalk: "host:70000", Resumint: "host:http",
		KeySet: "keys.json",
	}.Validate()
	if err == nil {
		t.Fatal("a config full of faults is valid")
	}
	for _, field := range []string{"Listen", "Admin", "RateLimit", "PDFTalk", "Resumint", "KeySet"} {
		if !strings.Contains(err.Error(), "envoy: "+field+":") {
			t.Errorf("the error does not name %s: %v", field, err)
		}
	}
	if _, err := envoy.Render(envoy.Config{Listen: "nowhere"}); err == nil {
		t.Error("Render accepts what Validate refuses")
	}
}

// As docker-compose.yaml mounts it, but for the key set, which Envoy reads while it validates.
func TestEnvoy_AcceptsWhatIsWritten(t *testing.T) {
	binary, err := process.Envoy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := token.Open(dir); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "envoy.yaml")
	write(t, config, render(t, envoy.Config{KeySet: filepath.Join(dir, token.KeySetFile)}))
	out, err := exec.CommandContext(t.Context(), binary, "--mode", "validate", "-c", config).CombinedOutput()
	if err != nil {
		t.Errorf("Envoy refuses envoy.yaml: %v\n%s", err, out)
	}
	if strings.Contains(string(out), "Deprecated") || strings.Contains(string(out), "deprecated") {
		t.Errorf("envoy.yaml uses something deprecated:\n%s", out)
	}
}

func render(t *testing.T, c envoy.Config) string {
	t.Helper()
	text, err := envoy.Render(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
