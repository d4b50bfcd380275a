package preflight_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/preflight"
)

var update = flag.Bool("update", false, "write docs/preflight.md anew")

const (
	page      = "../../docs/preflight.md"
	pageBegin = "<!-- written by go test ./internal/preflight -run Docs -update -->\n"
	pageEnd   = "<!-- end -->\n"
)

// The page lists the checks that there are, as they describe themselves.
func TestDocs_ListEveryCheck(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), pageBegin)
	_, after, ended := strings.Cut(rest, pageEnd)
	if !found || !ended {
		t.Fatalf("%s has no place for the checks", page)
	}
	want := before + pageBegin + table() + pageEnd + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is out of date, run go test ./internal/preflight -run Docs -update (-want +have):\n%s", page, diff)
	}
}

func table() string {
	var b strings.Builder
	b.WriteString("\n| check | set-ups | looks at | warns | fails | remedy |\n|---|---|---|---|---|---|\n")
	for _, c := range preflight.Catalogue() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n",
			c.ID, setups(c.Setups), cell(c.Looks), cell(c.Warns), cell(c.Fails), cell(c.Remedy))
	}
	return b.String() + "\n"
}

func setups(all []preflight.Setup) string {
	if len(all) == 3 {
		return "all"
	}
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.String()
	}
	return strings.Join(names, ", ")
}

func cell(s string) string { return strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;").Replace(s) }
