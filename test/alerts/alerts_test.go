// Package alerts_test holds the alerts to what they are about: promtool takes and tries them, every metric that they
// name is one that the service exports, and docs/redis.md says what to do about each.
package alerts_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/internal/telemetry"
)

type rules struct {
	Groups []struct {
		Rules []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type rule struct {
	Alert  string `yaml:"alert"`
	Record string `yaml:"record"`
	Expr   string `yaml:"expr"`
}

// read returns a file of the repository.
func read(t *testing.T, path ...string) string {
	t.Helper()
	root, err := process.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func all(t *testing.T) []rule {
	t.Helper()
	var r rules
	if err := yaml.Unmarshal([]byte(read(t, "deploy", "prometheus", "ratelimit.rules.yaml")), &r); err != nil {
		t.Fatal(err)
	}
	var list []rule
	for _, g := range r.Groups {
		list = append(list, g.Rules...)
	}
	if len(list) < 10 {
		t.Fatalf("%d rules were found", len(list))
	}
	return list
}

func TestAlerts_PassPromtool(t *testing.T) {
	if _, err := exec.LookPath("promtool"); errors.Is(err, exec.ErrNotFound) {
		t.Fatal("promtool is not installed: `apt-get install prometheus` brings it")
	}
	root, err := process.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "rules", "ratelimit.rules.yaml"}, {"test", "rules", "ratelimit.test.yaml"},
	} {
		cmd := exec.Command("promtool", args...)
		cmd.Dir = filepath.Join(root, "deploy", "prometheus")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// histogramSuffix is what Prometheus adds to the name of a histogram.
var histogramSuffix = regexp.MustCompile(`_(bucket|sum|count)$`)

func TestAlerts_NameMetricsThatExist(t *testing.T) {
	exported := map[string]bool{}
	for _, m := range telemetry.Catalogue() {
		exported[m.Name] = true
	}
	name := regexp.MustCompile(`ratelimit_[a-z0-9_]+`)
	for _, r := range all(t) {
		found := name.FindAllString(r.Expr, -1)
		if len(found) == 0 && !strings.Contains(r.Expr, "ratelimit:") {
			t.Errorf("%s%s is about none of our metrics", r.Alert, r.Record)
		}
		for _, n := range found {
			if !exported[histogramSuffix.ReplaceAllString(n, "")] {
				t.Errorf("%s%s asks for %s, which the service does not export", r.Alert, r.Record, n)
			}
		}
	}
}

func TestAlerts_AreTriedAndExplained(t *testing.T) {
	tried, page := read(t, "deploy", "prometheus", "ratelimit.test.yaml"), read(t, "docs", "redis.md")
	var names []string
	for _, r := range all(t) {
		if r.Alert == "" {
			continue
		}
		names = append(names, r.Alert)
		if !strings.Contains(tried, "alertname: "+r.Alert+"\n        exp_alerts:\n") {
			t.Errorf("%s never fires in ratelimit.test.yaml", r.Alert)
		}
		if !strings.Contains(page, "| `"+r.Alert+"` |") {
			t.Errorf("docs/redis.md does not say what to do about %s", r.Alert)
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(Ratelimit[A-Za-z]+)` \\|").FindAllStringSubmatch(page, -1) {
		if !slices.Contains(names, row[1]) {
			t.Errorf("docs/redis.md explains %s, which is no alert", row[1])
		}
	}
}
