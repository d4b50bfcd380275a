package main

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/topology"
)

// TestServe_FollowsTheMasterOfSentinels starts from one Sentinel, loses the master and the Sentinel beside it, and
// decides at the next master without being told anything. Every account is the least that the documentation asks for.
func TestServe_FollowsTheMasterOfSentinels(t *testing.T) {
	secrets := topology.NewSecrets()
	set := redistest.Sentinel(t, topology.Config{Secrets: secrets})
	data, sentinels := set.ServiceLogin(), set.SentinelLogin()
	s := startServe(t, []string{
		passwordVariable + "=" + data.Password, sentinelPasswordVariable + "=" + sentinels.Password,
	}, "--policies", policyFile(t, mesh), "--redis", set.URL(), "--redis-info-interval", "1s",
		"--redis-username", data.Username, "--sentinel-username", sentinels.Username)
	conn := dial(t, s.grpc, nil)
	s.awaitMetric(t, "ratelimit_store_lanes_connected", 2)
	mustDecide(t, conn, "pdftalk.ingest", tenant, "ALLOWED")
	s.awaitMetric(t, "ratelimit_redis_replicas_online", 2)

	old, err := set.Master(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range []*topology.Node{old, set.Sentinels()[0]} {
		if err := node.Freeze(); err != nil {
			t.Fatal(err)
		}
	}
	line := s.awaitLog(t, map[string]any{"message": "another master decides", "from": old.Addr()})
	s.await(t, "a decision at the new master", func(ctx context.Context) error {
		got, err := ask(ctx, conn, "pdftalk.ingest", "other")
		if err == nil && decision(got) != "ALLOWED" && decision(got) != "RATE_LIMITED" {
			t.Errorf("an answer outside the table: %v", got)
		}
		return err
	})
	var state statePage
	if _, text := s.get(t, "/state"); json.Unmarshal([]byte(text), &state) != nil ||
		state.Redis.Address != line["to"] || state.Sentinels.Master != line["to"] {
		t.Errorf("/state shows another master than %v:\n%s", line["to"], text)
	}
	s.awaitMetric(t, "ratelimit_store_master_changes_total", 1)
	s.search(t, tenant, data.Password, sentinels.Password)
}
