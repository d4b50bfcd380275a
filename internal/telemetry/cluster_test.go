package telemetry_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/honestlimit/ratelimit/internal/cluster"
	"github.com/honestlimit/ratelimit/internal/telemetry"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

func TestWatchCluster_ShowsItAsItStands(t *testing.T) {
	reg := prometheus.NewRegistry()
	var now cluster.Stats
	telemetry.WatchCluster(reg, func() cluster.Stats { return now })
	want(t, reg, map[string]float64{
		`ratelimit_cluster_shards{state="closed"}`: 0, "ratelimit_cluster_topology_age_seconds": -1,
	})
	shard := func(s failure.State) cluster.ShardStats {
		return cluster.ShardStats{Address: "10.0.0.1:7000", Breaker: failure.Snapshot{State: s}}
	}
	now = cluster.Stats{
		Shards: []cluster.ShardStats{shard(failure.Closed), shard(failure.Open), shard(failure.Closed)},
		Slots:  12345, Seen: time.Now().Add(time.Hour), Reloads: 9, ReloadsFailed: 2, CrossSlot: 3,
		Refunds:   cluster.RefundStats{Done: 4, Late: 5, Lost: 6},
		Redirects: cluster.RedirectStats{Moved: 7, Ask: 8, TryAgain: 9, ClusterDown: 10},
	}
	want(t, reg, map[string]float64{
		`ratelimit_cluster_shards{state="closed"}`: 2, `ratelimit_cluster_shards{state="open"}`: 1,
		`ratelimit_cluster_shards{state="half_open"}`: 0, "ratelimit_cluster_slots": 12345,
		`ratelimit_cluster_topology_reloads_total{result="ok"}`:     7,
		`ratelimit_cluster_topology_reloads_total{result="failed"}`: 2,
		`ratelimit_cluster_redirects_total{kind="moved"}`:           7,
		`ratelimit_cluster_redirects_total{kind="ask"}`:             8,
		`ratelimit_cluster_redirects_total{kind="tryagain"}`:        9,
		`ratelimit_cluster_redirects_total{kind="clusterdown"}`:     10,
		"ratelimit_cluster_cross_slot_total":                        3,
		`ratelimit_cluster_refunds_total{result="done"}`:            4,
		`ratelimit_cluster_refunds_total{result="late"}`:            5,
		`ratelimit_cluster_refunds_total{result="lost"}`:            6,
	})
}
