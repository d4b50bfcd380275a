package page_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/drill/page"
)

var update = flag.Bool("update", false, "write the golden files anew")

const ms = time.Millisecond

// sample is a failover in 3 s, with one check that failed and a text that HTML would choke on.
func sample() *journal.Report {
	j := &journal.Journal{
		Plan: journal.Plan{
			Category: journal.MasterCrash, Variant: "kill", Title: "The master dies.", Topology: "1 master & 2 replicas",
			Master: "redis-0", Expect: journal.Failover, Budget: 20 * ms, Margin: 30 * ms, MaxInFlight: 64,
			PromoteWithin: time.Second, DecideWithin: 150 * ms, SettleWithin: time.Second,
		},
		Started: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), End: 3 * time.Second,
		Streams: []journal.Stream{
			{Name: "steady", FailMode: "fail_closed", PerSecond: 100, Steady: true},
			{Name: "ration", FailMode: "fail_closed", PerSecond: 100, Ration: &journal.Ration{Burst: 150}},
		},
		Acts: []journal.Act{
			{At: time.Second, Kind: journal.Injected, Text: "redis-0 is killed <now>"},
			{At: 2 * time.Second, Kind: journal.Mended, Text: "redis-0 starts"},
		},
		Votes: []journal.Vote{
			{At: 10 * ms, Sentinel: "sentinel-1", OK: true, Text: "OK 3 usable Sentinels"},
			{At: 1500 * ms, Sentinel: "sentinel-1", Text: "NOQUORUM: 1 usable Sentinels"},
		},
	}
	for i, name := range []string{"+sdown", "+odown", "+elected-leader", "+promoted-slave", "+switch-master"} {
		at := time.Second + time.Duration(100*(i+1))*ms
		j.Events = append(j.Events, journal.Event{At: at, Source: "sentinel-1", Name: name, Kind: "master", Text: "m"})
	}
	j.Events = append(j.Events, journal.Event{At: 1100 * ms, Source: "sentinel-1", Name: "+monitor", Text: "unspoken"})
	for at := time.Duration(0); at < 3*time.Second; at += 10 * ms {
		a := journal.Answer{Due: at, Sent: at, At: at + ms, Verdict: journal.Admitted, Reason: "ALLOWED"}
		b := a
		b.Stream = 1
		if at >= time.Second && at < 1550*ms {
			a.Verdict, a.Reason, a.At = journal.Denied, "CIRCUIT_OPEN", at+20*ms
			b.Verdict, b.Reason = journal.Denied, "FAIL_CLOSED"
		} else if at > 2*time.Second {
			b.Verdict, b.Reason = journal.Denied, "RATE_LIMITED"
		}
		j.Answers = append(j.Answers, a, b)
	}
	for at := time.Duration(0); at < 3*time.Second; at += 50 * ms {
		s := journal.ServiceSample{At: at, Address: "127.0.0.1:6379", InFlight: 2, Breaker: "closed"}
		nodes := []journal.NodeState{
			{Name: "redis-0", Master: true, Script: true, Accepted: 5},
			{Name: "redis-1", LinkUp: true, Script: true, Accepted: 7},
		}
		if at >= time.Second {
			s.Breaker = "open"
		}
		if at >= 1550*ms {
			s.Address, s.Breaker = "127.0.0.1:6380", "closed"
			nodes[0].Master, nodes[0].LinkUp, nodes[1].Master, nodes[1].Accepted = false, true, true, 9
		}
		j.Service = append(j.Service, s)
		j.Rounds = append(j.Rounds, journal.Round{At: at, Nodes: nodes})
	}
	j.Checks = []journal.Check{{Name: "the moon is full", Want: "full", Got: "<new>"}}
	return journal.Analyse(j)
}

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +have); go test -update writes it anew:\n%s", path, diff)
	}
}

func TestText_IsAsTheGoldenFileSays(t *testing.T) {
	r := sample()
	r.Evidence = "drill-1"
	var out bytes.Buffer
	if err := page.Text(&out, r); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.txt", out.Bytes())
}

func TestSummary_IsAsTheGoldenFileSays(t *testing.T) {
	other := sample()
	other.Category, other.Marks, other.Recovery, other.Ledgers = journal.SentinelLoss, journal.Marks{}, journal.Moment{}, nil
	var out bytes.Buffer
	if err := page.Summary(&out, []*journal.Report{sample(), other}); err != nil {
		t.Fatal(err)
	}
	golden(t, "summary.txt", out.Bytes())
}

// The names of the JSON are promised to whoever reads it.
func TestReport_JSONIsAsTheGoldenFileSays(t *testing.T) {
	r := sample()
	r.Slots, r.Events = r.Slots[:2], r.Events[:1]
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", append(text, '\n'))
}

func html(t *testing.T, reports ...*journal.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := page.HTML(&out, reports); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestHTML_NeedsNothingFromElsewhere(t *testing.T) {
	text := html(t, sample())
	for _, forbidden := range []string{"http:", "https:", "<script", "<link", "<img", "@import", "url("} {
		if strings.Contains(text, forbidden) {
			t.Errorf("the page holds %q", forbidden)
		}
	}
	if !strings.Contains(text, "prefers-color-scheme:dark") {
		t.Error("the page has no dark form")
	}
}

func TestHTML_ShowsWhatMatters(t *testing.T) {
	text := html(t, sample())
	for _, want := range []string{
		"master-crash / kill", `class="pill fail"`, "redis-0 is killed &lt;now&gt;", "&lt;new&gt;", "the moon is full",
		"1 master &amp; 2 replicas", ">T5<", "+0.551 s", "CIRCUIT_OPEN", "NOQUORUM: 1 usable Sentinels", "2026-05-04 03:02:01",
		"+elected-leader", "127.0.0.1:6380 from", "open from", "lost from", "51 ms",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
	if strings.Contains(text, "unspoken") {
		t.Error("the page tells events that nobody looks for")
	}
}

func TestHTML_ListsSeveralReports(t *testing.T) {
	passed := sample()
	passed.Variant, passed.Passed = "freeze", true
	text := html(t, sample(), passed)
	for _, want := range []string{`href="#master-crash-kill"`, `id="master-crash-freeze"`, `class="pill pass"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
}

func TestHTML_DrawsWithNumbers(t *testing.T) {
	empty := journal.Analyse(&journal.Journal{})
	for name, text := range map[string]string{"sample": html(t, sample()), "empty": html(t, empty)} {
		drawings := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(text, -1)
		if len(drawings) == 0 {
			t.Fatalf("%s: no drawing", name)
		}
		for _, drawing := range drawings {
			wellFormed(t, drawing)
			for _, bad := range []string{"NaN", "Inf"} {
				if strings.Contains(drawing, bad) {
					t.Errorf("%s: a coordinate is %s", name, bad)
				}
			}
		}
	}
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("the drawing is not XML: %v", err)
		}
	}
}

// Marks that are close together keep labels that can be read: none lies on another.
func TestHTML_KeepsLabelsApart(t *testing.T) {
	flags := regexp.MustCompile(`class="flag" x="([0-9.]+)"`).FindAllStringSubmatch(html(t, sample()), -1)
	if len(flags) != 9 {
		t.Fatalf("%d labels, want 9", len(flags))
	}
	last := -100.0
	for _, f := range flags {
		var x float64
		if err := json.Unmarshal([]byte(f[1]), &x); err != nil {
			t.Fatal(err)
		}
		if x-last < 28 || x < 0 || x > 1080-28 {
			t.Errorf("a label at %v, the one before at %v", x, last)
		}
		last = x
	}
}
