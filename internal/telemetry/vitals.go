package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/honestlimit/ratelimit/internal/vitals"
)

// redisGauges are those of WatchVitals, with where each comes from. They are missing until a master has answered.
var redisGauges = []struct {
	metric Metric
	value  func(vitals.Summary) float64
}{
	{
		Metric{"ratelimit_redis_servers", Gauge, nil, "Masters that answered.", nil},
		func(s vitals.Summary) float64 { return float64(s.Servers) },
	},
	{
		Metric{"ratelimit_redis_connected_replicas", Gauge, nil, "Replicas connected to the masters.", nil},
		func(s vitals.Summary) float64 { return float64(s.Replicas) },
	},
	{
		Metric{"ratelimit_redis_replicas_online", Gauge, nil, "Replicas that have the data, of the master that has the fewest.", nil},
		func(s vitals.Summary) float64 { return float64(s.Online) },
	},
	{
		Metric{"ratelimit_redis_replica_lag_bytes", Gauge, nil, "Bytes of the replication stream that the replica furthest behind has not acknowledged.", nil},
		func(s vitals.Summary) float64 { return float64(s.Lag) },
	},
	{
		Metric{"ratelimit_redis_replica_lag_seconds", Gauge, nil, "Time since the most silent replica was heard.", nil},
		func(s vitals.Summary) float64 { return float64(s.LagSeconds) },
	},
	{
		Metric{"ratelimit_redis_full_syncs", Gauge, nil, "Replicas that had to copy everything, since the masters started.", nil},
		func(s vitals.Summary) float64 { return float64(s.FullSyncs) },
	},
	{
		Metric{"ratelimit_redis_partial_syncs", Gauge, nil, "Replicas that caught up from the backlog, since the masters started.", nil},
		func(s vitals.Summary) float64 { return float64(s.PartialSyncs) },
	},
	{
		Metric{"ratelimit_redis_refused_partial_syncs", Gauge, nil, "Replicas for which the backlog was too short, since the masters started.", nil},
		func(s vitals.Summary) float64 { return float64(s.RefusedSyncs) },
	},
	{
		Metric{"ratelimit_redis_used_memory_bytes", Gauge, nil, "Memory in use.", nil},
		func(s vitals.Summary) float64 { return float64(s.UsedMemory) },
	},
	{
		Metric{"ratelimit_redis_max_memory_bytes", Gauge, nil, "Memory that may be used; 0 for no limit.", nil},
		func(s vitals.Summary) float64 { return float64(s.MaxMemory) },
	},
	{
		Metric{"ratelimit_redis_memory_use_ratio", Gauge, nil, "Share of its maxmemory that the fullest master uses; 0 without a limit.", nil},
		func(s vitals.Summary) float64 { return s.MemoryUse },
	},
	{
		Metric{"ratelimit_redis_memory_fragmentation_ratio", Gauge, nil, "Memory taken from the system for each byte in use, of the worst master.", nil},
		func(s vitals.Summary) float64 { return s.Fragmentation },
	},
	{
		Metric{"ratelimit_redis_evicted_keys", Gauge, nil, "Buckets that had to go before they were full, since the masters started.", nil},
		func(s vitals.Summary) float64 { return float64(s.EvictedKeys) },
	},
	{
		Metric{"ratelimit_redis_evicted_scripts", Gauge, nil, "Scripts that had to go, since the masters started (Redis 7.4 and later).", nil},
		func(s vitals.Summary) float64 { return float64(s.EvictedScripts) },
	},
	{
		Metric{"ratelimit_redis_clients", Gauge, nil, "Connections, ours and those of others.", nil},
		func(s vitals.Summary) float64 { return float64(s.Clients) },
	},
	{
		Metric{"ratelimit_redis_max_clients", Gauge, nil, "Connections that there may be.", nil},
		func(s vitals.Summary) float64 { return float64(s.MaxClients) },
	},
	{
		Metric{"ratelimit_redis_commands_per_second", Gauge, nil, "Commands of the last moments.", nil},
		func(s vitals.Summary) float64 { return float64(s.OpsPerSecond) },
	},
	{
		Metric{"ratelimit_redis_input_bytes", Gauge, nil, "Bytes received, since the masters started.", nil},
		func(s vitals.Summary) float64 { return float64(s.InputBytes) },
	},
	{
		Metric{"ratelimit_redis_output_bytes", Gauge, nil, "Bytes sent, since the masters started.", nil},
		func(s vitals.Summary) float64 { return float64(s.OutputBytes) },
	},
	{
		Metric{"ratelimit_redis_last_fork_seconds", Gauge, nil, "How long the newest fork stopped the master it took longest at.", nil},
		func(s vitals.Summary) float64 { return float64(s.LastForkMicros) / 1e6 },
	},
	{
		Metric{"ratelimit_redis_saving", Gauge, nil, "1 while a snapshot or a rewrite of the log runs anywhere.", nil},
		func(s vitals.Summary) float64 { return float64(s.Saving) },
	},
	{
		Metric{"ratelimit_redis_slow_commands", Gauge, nil, "Length of the slow log; 0 where +slowlog|len is not allowed.", nil},
		func(s vitals.Summary) float64 { return float64(s.SlowCommands) },
	},
}

// vitalsCollector reads a poller when it is scraped.
type vitalsCollector struct {
	latest      func() (vitals.Summary, uint64)
	gauges      []*prometheus.Desc
	age, failed *prometheus.Desc
}

// WatchVitals registers gauges that show what Redis last said about itself; latest is (*vitals.Poller).Latest.
func WatchVitals(reg prometheus.Registerer, latest func() (vitals.Summary, uint64)) {
	c := &vitalsCollector{latest: latest, age: redisInfoAge.desc(), failed: redisInfoFailed.desc()}
	for _, g := range redisGauges {
		c.gauges = append(c.gauges, g.metric.desc())
	}
	reg.MustRegister(c)
}

// Describe implements prometheus.Collector.
func (c *vitalsCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range append([]*prometheus.Desc{c.age, c.failed}, c.gauges...) {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *vitalsCollector) Collect(ch chan<- prometheus.Metric) {
	now, failed := c.latest()
	ch <- prometheus.MustNewConstMetric(c.failed, prometheus.CounterValue, float64(failed))
	if now.At.IsZero() {
		return
	}
	ch <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, seconds(time.Since(now.At)))
	for i, g := range redisGauges {
		ch <- prometheus.MustNewConstMetric(c.gauges[i], prometheus.GaugeValue, g.value(now))
	}
}
