package failure_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

var update = flag.Bool("update", false, "write the decision table into README.md")

const (
	readme     = "../../README.md"
	tableBegin = "<!-- decision table: written by go test ./pkg/failure -run Readme -update -->\n"
	tableEnd   = "<!-- end of decision table -->\n"
)

// The README shows the table that the code follows, and no other.
func TestTable_ReadmeShowsIt(t *testing.T) {
	raw, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), tableBegin)
	shown, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		t.Fatalf("README.md has no place for the decision table, between %q and %q", tableBegin, tableEnd)
	}
	want := markdownTable()
	if *update {
		if err := os.WriteFile(readme, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("README.md shows another decision table than the code's; -update writes it (-code +README):\n%s", diff)
	}
}

func markdownTable() string {
	var b strings.Builder
	b.WriteString("| store outcome | fail_open | fail_closed |\n|---|---|---|\n")
	own := fmt.Sprintf("200 `%v` or 429 `%v`", failure.Allowed, failure.RateLimited)
	fmt.Fprintf(&b, "| %v | %s | %s |\n", failure.Success, own, own)
	for _, row := range failure.Table {
		fmt.Fprintf(&b, "| %v | emergency limiter: 200 `%v` or 429 `%v` | 503 `%v` |\n",
			row.Outcome, row.Open, failure.EmergencyLocalLimit, row.Closed)
	}
	return b.String()
}
