package telemetry_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/honestlimit/ratelimit/internal/telemetry"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/policy"
)

var (
	errMalformed = status.Error(codes.InvalidArgument, "domain: is empty")
	errFuture    = status.Error(codes.Code(99), "a code that does not exist yet")
)

func TestNewLogger_Formats(t *testing.T) {
	for _, c := range []struct {
		format telemetry.Format
		isJSON bool
	}{{telemetry.FormatAuto, true}, {telemetry.FormatJSON, true}, {telemetry.FormatConsole, false}} {
		var buf bytes.Buffer
		log := telemetry.NewLogger(&buf, c.format, zerolog.InfoLevel)
		log.Debug().Msg("hidden")
		log.Info().Str("k", "v").Msg("shown")
		text := buf.String()
		if strings.HasPrefix(text, "{") != c.isJSON || !strings.Contains(text, "shown") ||
			strings.Contains(text, "hidden") {
			t.Errorf("%v: wrote %q", c.format, text)
		}
		if !strings.Contains(text, time.Now().UTC().Format("2006-")) && c.isJSON {
			t.Errorf("%v: wrote %q, want the time in it", c.format, text)
		}
	}
}

func TestParseFormat_InvertsString(t *testing.T) {
	for _, f := range []telemetry.Format{telemetry.FormatAuto, telemetry.FormatJSON, telemetry.FormatConsole} {
		if got, err := telemetry.ParseFormat(f.String()); got != f || err != nil {
			t.Errorf("ParseFormat(%v) = %v, %v", f, got, err)
		}
	}
	if _, err := telemetry.ParseFormat("xml"); err == nil {
		t.Error("ParseFormat(xml) = nil error, want one")
	}
}

func TestEvents_LogsMovesOfTheBreaker(t *testing.T) {
	var buf bytes.Buffer
	e := telemetry.NewEvents(jsonLog(&buf))
	e.Moved(failure.Transition{
		From: failure.Closed, To: failure.Open, Trigger: failure.TriggerFailures, Cause: failure.CauseReset,
		Quarantine: 30 * time.Second, EarliestProof: 500 * time.Millisecond,
	})
	e.Moved(failure.Transition{From: failure.HalfOpen, To: failure.Closed, Trigger: failure.TriggerSuccess})
	wanted := []map[string]any{
		{
			"level": "warn", "message": "breaker moved", "from": "closed", "to": "open", "trigger": "failures",
			"cause": "reset", "quarantine": "30s", "earliest_proof": "500ms",
		},
		{"level": "info", "message": "breaker moved", "from": "half_open", "to": "closed", "trigger": "success"},
	}
	if diff := cmp.Diff(wanted, logged(t, &buf)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestEvents_LogsReloads(t *testing.T) {
	var buf bytes.Buffer
	telemetry.NewEvents(jsonLog(&buf)).Reloaded(policy.Report{
		Faults: policy.Faults{{File: "mesh.yaml", Line: 3, Column: 5, Text: "rate must be > 0"}},
		Domains: []policy.DomainReport{
			{Name: "edge", Outcome: policy.Installed, Version: "aa"},
			{Name: "mesh", Outcome: policy.Kept, Version: "bb"},
			{Name: "same", Outcome: policy.Unchanged, Version: "cc"},
		},
	})
	const reloaded = "policies reloaded"
	wanted := []map[string]any{
		{"level": "error", "message": "policy fault", "fault": "mesh.yaml:3:5: rate must be > 0"},
		{"level": "info", "message": reloaded, "domain": "edge", "outcome": "installed", "version": "aa"},
		{"level": "error", "message": reloaded, "domain": "mesh", "outcome": "kept", "version": "bb"},
		{"level": "debug", "message": reloaded, "domain": "same", "outcome": "unchanged", "version": "cc"},
	}
	if diff := cmp.Diff(wanted, logged(t, &buf)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// What a handler panics with may hold an identity; what the runtime panics with does not.
func TestEvents_HidesWhatAHandlerPanickedWith(t *testing.T) {
	var buf bytes.Buffer
	e := telemetry.NewEvents(jsonLog(&buf))
	e.Panicked(errors.New("tenant acme"), []byte("goroutine 1"))
	func() {
		defer func() { e.Panicked(recover(), nil) }()
		var nothing []int
		_ = nothing[len(nothing)]
	}()
	lines := logged(t, &buf)
	if len(lines) != 2 || lines[0]["what"] != "*errors.errorString" || lines[0]["stack"] != "goroutine 1" ||
		!strings.Contains(lines[1]["what"].(string), "index out of range") {
		t.Errorf("log = %v", lines)
	}
}
