package telemetry_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/honestlimit/ratelimit/internal/sentinel"
	"github.com/honestlimit/ratelimit/internal/telemetry"
)

const (
	oldMaster = "10.0.0.1:6379"
	newMaster = "10.0.0.2:6379"
)

func aboutMaster(name string) sentinel.Event {
	return sentinel.Event{Name: name, Kind: "master", Address: oldMaster, Master: oldMaster, Epoch: 7}
}

func TestSentinelLog_CountsEverySentinelAndLogsOnce(t *testing.T) {
	var buf bytes.Buffer
	reg := prometheus.NewRegistry()
	hooks := telemetry.NewSentinelLog(jsonLog(&buf)).Hooks(telemetry.NewSentinelEvents(reg))
	switches := sentinel.Event{
		Name: "+switch-master", Kind: "master", Address: newMaster, Master: oldMaster, Epoch: 8, Elapsed: 1500 * time.Millisecond,
	}
	later := switches
	later.Epoch, later.Elapsed = 9, 2*time.Second // another Sentinel, which has heard of the next epoch already
	try, again := aboutMaster("+try-failover"), aboutMaster("+try-failover")
	again.Epoch = 8 // another attempt of the same Sentinel
	for _, e := range []sentinel.Event{try, again, again, switches, later, {Name: "other"}, {Name: "+tilt"}} {
		hooks.Event("s1:26379", e)
	}
	event := func(level, name string, epoch float64) map[string]any {
		return map[string]any{
			"level": level, "message": "Sentinel event", "event": name, "sentinel": "s1:26379", "epoch": epoch,
		}
	}
	with := func(line map[string]any, fields ...string) map[string]any {
		for i := 0; i < len(fields); i += 2 {
			line[fields[i]] = fields[i+1]
		}
		return line
	}
	master := []string{"kind", "master", "address", oldMaster, "master", oldMaster}
	wanted := []map[string]any{
		with(event("warn", "+try-failover", 7), master...),
		with(event("warn", "+try-failover", 8), master...),
		with(event("warn", "+switch-master", 8), "kind", "master", "address", newMaster, "master", oldMaster, "elapsed", "1.5s"),
		event("debug", "other", 0),
		event("warn", "+tilt", 0),
	}
	if diff := cmp.Diff(wanted, logged(t, &buf)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	want(t, reg, map[string]float64{
		`ratelimit_sentinel_events_total{event="+switch-master"}`: 2,
		`ratelimit_sentinel_events_total{event="+try-failover"}`:  3,
		`ratelimit_sentinel_events_total{event="other"}`:          1,
		`ratelimit_sentinel_events_total{event="-odown"}`:         0,
	})
}

func TestSentinelLog_ForgetsWhatItToldOf(t *testing.T) {
	var buf bytes.Buffer
	l := telemetry.NewSentinelLog(jsonLog(&buf))
	const distinct = 1000 // far more than it may remember
	for i := range distinct {
		l.Event("s1:26379", sentinel.Event{Name: "+slave", Kind: "slave", Address: fmt.Sprintf("10.0.0.1:%d", i)})
	}
	l.Event("s1:26379", sentinel.Event{Name: "+slave", Kind: "slave", Address: "10.0.0.1:0"})
	if got := len(logged(t, &buf)); got != distinct+1 {
		t.Errorf("%d lines, want %d: the first was forgotten", got, distinct+1)
	}
}

func TestSentinelLog_TellsWhatBecomesOfSentinelsAndMasters(t *testing.T) {
	var buf bytes.Buffer
	hooks := telemetry.NewSentinelLog(jsonLog(&buf)).Hooks(telemetry.NewSentinelEvents(prometheus.NewRegistry()))
	hooks.Found("s1:26379")
	hooks.Lost("s1:26379", errors.New("refused"))
	hooks.Switched(sentinel.Switch{To: oldMaster, Epoch: 1})
	hooks.Switched(sentinel.Switch{From: oldMaster, To: newMaster, Took: 2 * time.Second})
	hooks.Quorum(sentinel.Quorum{OK: true, Text: "fine"})
	hooks.Quorum(sentinel.Quorum{Text: "NOQUORUM"})
	const named, quorum = "master named by Sentinels", "quorum of the Sentinels"
	wanted := []map[string]any{
		{"level": "info", "message": "Sentinel answers", "sentinel": "s1:26379"},
		{"level": "warn", "message": "Sentinel lost", "sentinel": "s1:26379", "error": "refused"},
		{"level": "info", "message": named, "to": oldMaster, "epoch": 1.0},
		{"level": "warn", "message": named, "from": oldMaster, "to": newMaster, "took": "2s"},
		{"level": "info", "message": quorum, "ok": true, "text": "fine"},
		{"level": "warn", "message": quorum, "ok": false, "text": "NOQUORUM"},
	}
	if diff := cmp.Diff(wanted, logged(t, &buf)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestWatchSentinels_ShowsThemAsTheyStand(t *testing.T) {
	reg := prometheus.NewRegistry()
	var stats sentinel.Stats
	telemetry.WatchSentinels(reg, func() sentinel.Stats { return stats })
	want(t, reg, map[string]float64{
		"ratelimit_sentinel_master_known": 0, "ratelimit_sentinel_quorum_ok": 0,
		"ratelimit_sentinel_failover_seconds": -1, "ratelimit_sentinel_failover_age_seconds": -1,
	})
	stats = sentinel.Stats{
		Master: newMaster, Epoch: 8, Switches: 1, Known: 3, Reachable: 2, Agreeing: 1, Quorum: sentinel.Quorum{OK: true},
		SDown: true, FailoverTook: 2 * time.Second, FailoverEnded: time.Now(),
		Replicas: []sentinel.Replica{
			{Healthy: true, Linked: true, Offset: 1000},
			{Healthy: true, Offset: 400, LinkDown: 3 * time.Second},
			{Linked: true, Offset: 700},
		},
	}
	want(t, reg, map[string]float64{
		"ratelimit_sentinels_known": 3, "ratelimit_sentinels_reachable": 2, "ratelimit_sentinels_agreeing": 1,
		"ratelimit_sentinel_quorum_ok": 1, "ratelimit_sentinel_master_known": 1, "ratelimit_sentinel_config_epoch": 8,
		`ratelimit_sentinel_master_down{flag="s_down"}`: 1, `ratelimit_sentinel_master_down{flag="o_down"}`: 0,
		"ratelimit_sentinel_master_switches_total": 1, "ratelimit_sentinel_replicas": 3,
		"ratelimit_sentinel_replicas_healthy": 1, "ratelimit_sentinel_replica_lag_bytes": 600,
		"ratelimit_sentinel_replica_link_down_seconds": 3, "ratelimit_sentinel_failover_seconds": 2,
	})
	if age := samples(t, reg)["ratelimit_sentinel_failover_age_seconds"]; age < 0 || age > 60 {
		t.Errorf("age of the failover = %v s", age)
	}
}
