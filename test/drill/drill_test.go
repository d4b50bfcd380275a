// Package drill_test plays the drills with real processes: redis-server, redis-sentinel and the service as users build
// it. What a drill asserts is asserted here, with margins that a busy machine does not break.
package drill_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill"
	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/drill/page"
	"github.com/honestlimit/ratelimit/internal/process"
)

// Bounds that hold on a machine that is busy with other things. The goals are those of docs/drills.md.
const (
	margin       = 200 * time.Millisecond
	decideWithin = 1500 * time.Millisecond
	budget       = 40 * time.Millisecond
)

var keep = flag.String("keep", "", "directory in which the pages of all drills are kept")

// program is the service, built once.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "drill-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if program, err = build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func build(dir string) (string, error) {
	root, err := process.Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "ratelimit")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/ratelimit")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the service: %w\n%s", err, out)
	}
	return path, nil
}

// play runs one drill and fails the test with its report.
func play(t *testing.T, category journal.Category, variant string) *journal.Report {
	t.Helper()
	evidence := t.ArtifactDir()
	report, err := drill.Run(t.Context(), drill.Config{
		Category: category, Variant: variant, Program: program, Rate: 300, Budget: budget, Margin: margin,
		DownAfter: 1500 * time.Millisecond, Before: 2 * time.Second, Outage: 1500 * time.Millisecond, After: time.Second,
		Hurry: true, DecideWithin: decideWithin, Evidence: evidence,
	})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := page.Text(&text, report); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + text.String())
	if !report.Passed {
		t.Errorf("%v / %s failed", category, variant)
	}
	keepPage(t, report)
	return report
}

func keepPage(t *testing.T, report *journal.Report) {
	t.Helper()
	if *keep == "" {
		return
	}
	f, err := os.Create(filepath.Join(*keep, fmt.Sprintf("%v-%s.html", report.Category, report.Variant)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := page.HTML(f, []*journal.Report{report}); err != nil {
		t.Error(err)
	}
}

// The five categories of the specification's failure matrix, a Cluster's, and what each of them must prove beyond what
// the drill itself asserts.
func TestDrills(t *testing.T) {
	var afterSwitch []time.Duration
	for _, c := range []struct {
		category journal.Category
		variant  string
		marks    bool // T0 to T6 must all be seen; a Cluster has no T3
	}{
		{journal.MasterExit, "stop", true},
		{journal.MasterCrash, "kill", true},
		{journal.MasterCrash, "freeze", true},
		{journal.Partition, "master", true},
		{journal.ReplicaLag, "freeze", true},
		{journal.SentinelLoss, "two", false},
		{journal.Cluster, "kill", false},
		{journal.Cluster, "freeze", false},
		{journal.Cluster, "migrate", false},
		{journal.Cluster, "reshard", false},
	} {
		t.Run(c.category.String()+"/"+c.variant, func(t *testing.T) {
			report := play(t, c.category, c.variant)
			if report.AfterSwitch.Happened {
				afterSwitch = append(afterSwitch, report.AfterSwitch.At)
			}
			if !c.marks {
				return
			}
			for _, m := range report.Marks.List() {
				if !m.Happened {
					t.Errorf("%s (%s) was never seen", m.Short, m.Long)
				}
			}
		})
	}
	if len(afterSwitch) == 0 {
		return
	}
	slices.Sort(afterSwitch)
	median := afterSwitch[len(afterSwitch)/2]
	t.Logf("T5 after +switch-master: %v, median %v, goal 150ms", afterSwitch, median)
	if median > decideWithin {
		t.Errorf("median of T5 after +switch-master = %v, want at most %v", median, decideWithin)
	}
}
