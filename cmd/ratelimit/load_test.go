package main

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/honestlimit/ratelimit/internal/load"
)

// silent is a service that answers every request with UNIMPLEMENTED: load needs no more to be tried out.
func silent(t *testing.T, network, address string) string {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(server, ratelimitv3.UnimplementedRateLimitServiceServer{})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func TestLoad_HelpTeaches(t *testing.T) {
	got := ratelimit(t, "load", "--help")
	for _, want := range []string{
		"ratelimit load --domain mesh", "{key}", "--rate=N/s", "10000/s", "--fault-end", "--freeze", "--limit", "100/s,burst=200",
	} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("exit code %d, help does not say %q:\n%s", got.code, want, got.out)
		}
	}
	if n := strings.Count(got.out, "ratelimit load --"); n < 4 { // the usage line and three examples
		t.Errorf("%d examples, want three", n-1)
	}
}

func TestLoad_NamesTheFlagAtFault(t *testing.T) {
	nobody := "unix:" + filepath.Join(t.TempDir(), "nobody.sock")
	ask := []string{"--domain", "mesh", "tenant=acme"}
	for name, c := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"nothing to ask":       {[]string{"load"}, 2, []string{"--domain"}},
		"not an entry":         {[]string{"--domain", "mesh", "tenant"}, 2, []string{"KEY=VALUE", `"tenant"`}},
		"no rate":              {append([]string{"--rate", "fast"}, ask...), 2, []string{"--rate", "10000/s"}},
		"no limit":             {append([]string{"--limit", "100/s,burst=x"}, ask...), 2, []string{"--limit", "burst"}},
		"no distribution":      {append([]string{"--dist", "odd"}, ask...), 2, []string{"--dist", "zipf"}},
		"keys without a place": {append([]string{"--keys", "10"}, ask...), 2, []string{"--keys: ", "{key}"}},
		"several at once": {
			append([]string{"--connections=-1", "--backlog", "5", "--pid", "2147483647"}, ask...), 2,
			[]string{"--connections: ", "--backlog: "},
		},
		"no such process":     {append([]string{"--target", silent(t, "tcp", "127.0.0.1:0"), "--pid", "2147483647"}, ask...), 2, []string{"--pid: "}},
		"nobody there":        {append([]string{"--target", nobody}, ask...), 1, []string{"--target", "nobody.sock"}},
		"nothing to mend":     {append([]string{"--fault-end", "true"}, ask...), 2, []string{"--fault-end: "}},
		"frozen for ever":     {append([]string{"--freeze", strconv.Itoa(os.Getpid())}, ask...), 2, []string{"--freeze: ", "--fault-for"}},
		"no victim":           {append([]string{"--kill", "2147483647"}, ask...), 2, []string{"--kill: "}},
		"everything's victim": {append([]string{"--kill", "1"}, ask...), 2, []string{"--kill: "}},
		"a fault too late":    {append([]string{"--fault", "true", "--duration", "1s"}, ask...), 2, []string{"--fault-at: "}},
		"no authority":        {append([]string{"--tls-ca", "/no.pem"}, ask...), 2, []string{"--tls-ca: ", "/no.pem"}},
	} {
		args := c.args
		if args[0] != "load" {
			args = append([]string{"load"}, args...)
		}
		got := ratelimit(t, args...)
		if got.code != c.code {
			t.Errorf("%s: exit code %d, want %d: %s", name, got.code, c.code, got.errOut)
		}
		for _, want := range c.want {
			if !strings.Contains(got.errOut, want) {
				t.Errorf("%s: stderr %q does not say %q", name, got.errOut, want)
			}
		}
	}
}

func TestLoad_ReportsAsJSON(t *testing.T) {
	target := "unix:" + silent(t, "unix", filepath.Join(t.TempDir(), "rls.sock"))
	mark := filepath.Join(t.TempDir(), "mark")
	got := ratelimit(t, "load", "--target", target, "--domain", "mesh", "--rate", "100/s", "--duration", "700ms", "--keys", "5",
		"--dist", "zipf", "--limit", "10/s", "--fault", "echo begun >> "+mark, "--fault-end", "echo ended >> "+mark,
		"--fault-at", "200ms", "--fault-for", "100ms", "--json", "a=b", "tenant={key}", "+", "c=d")
	if got.code != 0 || got.errOut != "" {
		t.Fatalf("exit code %d, stderr %q", got.code, got.errOut)
	}
	var report load.Report
	if err := json.Unmarshal([]byte(got.out), &report); err != nil {
		t.Fatalf("%v:\n%s", err, got.out)
	}
	if report.All.Requests != 70 || report.All.Errors != 70 || report.All.Answers[0].Reason != "Unimplemented" {
		t.Errorf("%d requests, %d errors, %+v, want 70 UNIMPLEMENTED", report.All.Requests, report.All.Errors, report.All.Answers)
	}
	if report.Fault == nil || len(report.Fault.Phases) != 3 || report.Overshoot == nil || report.Overshoot.LimitBurst != 10 {
		t.Errorf("fault %+v, overshoot %+v, want both, and a burst of the rate's number", report.Fault, report.Overshoot)
	}
	if text, err := os.ReadFile(mark); err != nil || string(text) != "begun\nended\n" {
		t.Errorf("the commands left %q, %v", text, err)
	}
}

func TestLoad_FailsWithTheFaultCommand(t *testing.T) {
	target := silent(t, "tcp", "127.0.0.1:0")
	got := ratelimit(t, "load", "--target", target, "--domain", "mesh", "--rate", "100/s", "--duration", "10s",
		"--fault", "exit 3", "--fault-at", "100ms", "tenant=acme")
	if got.code != 1 || !strings.Contains(got.errOut, "--fault: exit status 3") || !strings.Contains(got.out, "Unimplemented") {
		t.Errorf("exit code %d, stderr %q, stdout %q, want the flag, and what was seen until then", got.code, got.errOut, got.out)
	}
}

func TestRateFlag_ReadsRates(t *testing.T) {
	for text, want := range map[string]float64{
		"10000/s": 10_000, "0.5/s": 0.5, "600/min": 10, "600/m": 10, "36/h": 0.01, "100/10s": 10, "1/250ms": 4,
	} {
		var got rateFlag
		if err := got.UnmarshalText([]byte(text)); err != nil || float64(got) != want {
			t.Errorf("%s reads as %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "10", "10/", "/s", "-1/s", "0/s", "1/x", "1/-1s", "1/0s", "NaN/s", "Inf/s"} {
		var got rateFlag
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q reads as %v, want an error", text, got)
		}
	}
}

func TestLimitFlag_ReadsLimits(t *testing.T) {
	for text, want := range map[string]load.Limit{
		"100/s,burst=200": {PerSecond: 100, Burst: 200},
		"1000/10s":        {PerSecond: 100, Burst: 1000},
		"1/s,burst=0":     {PerSecond: 1},
	} {
		var got limitFlag
		if err := got.UnmarshalText([]byte(text)); err != nil || load.Limit(got) != want {
			t.Errorf("%s reads as %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"100", "100/s,burst=-1", "100/s,burst=", "100/s, burst=1", "100/s,burst=NaN"} {
		var got limitFlag
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q reads as %+v, want an error", text, got)
		}
	}
}

func TestProgressText_FitsALine(t *testing.T) {
	p := load.Progress{
		Elapsed: 1500 * time.Millisecond, Total: 10 * time.Second, FaultActive: true,
		Answered: 1234, PerSecond: 998.7, OverLimit: 3, Errors: 2, Worst: 1234567 * time.Nanosecond,
	}
	want := "1.5/10.0 s  999/s  1234 answered  3 over limit  2 errors  worst 1.23ms  FAULT"
	if got := progressText(p); got != want {
		t.Errorf("progress\n%s\nwant\n%s", got, want)
	}
	p.Total, p.FaultActive, p.WarmingUp = 0, false, true
	want = "1.5 s  999/s  1234 answered  3 over limit  2 errors  worst 1.23ms  warming up"
	if got := progressText(p); got != want {
		t.Errorf("progress\n%s\nwant\n%s", got, want)
	}
}

// The lines of a pipe are read by programs, so that nothing but errors goes there.
func TestProgressLine_IsOffWithoutATerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	line := newProgressLine(w)
	line.show(load.Progress{})
	line.clear()
	w.Close()
	if text, err := io.ReadAll(r); err != nil || len(text) > 0 {
		t.Errorf("wrote %q, %v", text, err)
	}
}
