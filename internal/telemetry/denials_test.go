package telemetry_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/honestlimit/ratelimit/internal/telemetry"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// logged are the lines that log wrote to buf, decoded.
func logged(tb testing.TB, buf *bytes.Buffer) []map[string]any {
	tb.Helper()
	var lines []map[string]any
	for dec := json.NewDecoder(buf); dec.More(); {
		var line map[string]any
		if err := dec.Decode(&line); err != nil {
			tb.Fatal(err)
		}
		delete(line, "time")
		lines = append(lines, line)
	}
	return lines
}

func jsonLog(buf *bytes.Buffer) zerolog.Logger {
	return telemetry.NewLogger(buf, telemetry.FormatJSON, zerolog.DebugLevel)
}

func TestDenials_LogWhoWasDeniedAsAHash(t *testing.T) {
	var buf bytes.Buffer
	d := telemetry.NewDenials(jsonLog(&buf), deciding{
		Reason: failure.FailClosed, Cause: failure.CauseDeadline, Governing: 1, RetryAfter: 1500 * time.Millisecond,
	})
	d.Decide(t.Context(), []limit.Charge{charge(tailor()), charge(ingest())}, nil)
	wanted := []map[string]any{{
		"level": "warn", "message": "request denied", "domain": "mesh", "endpoint_id": "pdftalk.ingest",
		"reason": "FAIL_CLOSED", "cause": "deadline", "answer": "unavailable", "bucket": "c0moEZm_bUv1", "cost": 2.0,
		"retry_after_ms": 1500.0,
	}}
	if diff := cmp.Diff(wanted, logged(t, &buf)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// With shard_by the tenant is between the braces, and the rest of the caller behind them.
func TestDenials_TellCallersOfOneTenantApart(t *testing.T) {
	var buf bytes.Buffer
	ch := charge(ingest())
	ch.Key = "rl:v1:{tenant}caller:pdftalk.ingest:1"
	telemetry.NewDenials(jsonLog(&buf), deciding{Reason: failure.FailClosed}).Decide(t.Context(), []limit.Charge{ch}, nil)
	if got := logged(t, &buf)[0]["bucket"]; got != "tenantcaller" {
		t.Errorf("the bucket is logged as %q, want both hashes", got)
	}
}

// The specification: metrics count what the emergency limiter admits, the log of denials does not.
func TestDenials_DoNotLogWhatPassed(t *testing.T) {
	var buf bytes.Buffer
	for _, decision := range []failure.Decision{
		{Reason: failure.Allowed, Allowed: true},
		{Reason: failure.RedisTimeout, Cause: failure.CauseDeadline, Allowed: true},
	} {
		telemetry.NewDenials(jsonLog(&buf), deciding(decision)).
			Decide(t.Context(), []limit.Charge{charge(tailor())}, nil)
	}
	if buf.Len() > 0 {
		t.Errorf("log = %s, want nothing", buf.String())
	}
}

func TestDenials_LogASample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var buf bytes.Buffer
		d := telemetry.NewDenials(jsonLog(&buf), deciding{Reason: failure.RateLimited})
		charges := []limit.Charge{charge(tailor())}
		steps := []struct {
			after      time.Duration
			denials    int
			reason     failure.Reason
			lines      int
			suppressed any // of the first line
		}{
			{0, 1000, failure.RateLimited, 5, nil},
			{999 * time.Millisecond, 10, failure.RateLimited, 0, nil},
			{0, 2, failure.FailClosed, 2, nil}, // a flood of one reason does not hide another
			{time.Millisecond, 1, failure.RateLimited, 1, 1005.0},
			{time.Second, 7, failure.RateLimited, 5, nil},
			{time.Second, 1, failure.RateLimited, 1, 2.0},
		}
		for i, s := range steps {
			time.Sleep(s.after)
			for range s.denials {
				d.Log(charges, failure.Decision{Reason: s.reason})
			}
			lines := logged(t, &buf)
			if len(lines) != s.lines {
				t.Fatalf("step %d: %d lines, want %d", i, len(lines), s.lines)
			}
			if len(lines) > 0 && lines[0]["suppressed"] != s.suppressed {
				t.Errorf("step %d: suppressed = %v, want %v", i, lines[0]["suppressed"], s.suppressed)
			}
		}
	})
}
