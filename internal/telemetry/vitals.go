package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/honestlimit/ratelimit/internal/vitals"
)

// redisGauges are those of WatchVitals, with where each comes from. They are missing until a master has answered.
var redisGauges = []redisGauge{
	{"servers", "Masters that answered.", func(s *vitals.Summary) float64 { return float64(s.Servers) }},
	{
		"connected_replicas", "Replicas connected to the masters.",
		func(s *vitals.Summary) float64 { return float64(s.Replicas) },
	},
	{
		"replicas_online", "Replicas that have the data, of the master that has the fewest.",
		func(s *vitals.Summary) float64 { return float64(s.Online) },
	},
	{
		"replica_lag_bytes", "Bytes of the replication stream that the replica furthest behind has not acknowledged.",
		func(s *vitals.Summary) float64 { return float64(s.Lag) },
	},
	{
		"replica_lag_seconds", "Time since the most silent replica was heard.",
		func(s *vitals.Summary) float64 { return float64(s.LagSeconds) },
	},
	{
		"full_syncs", "Replicas that had to copy everything, since the masters started.",
		func(s *vitals.Summary) float64 { return float64(s.FullSyncs) },
	},
	{
		"partial_syncs", "Replicas that caught up from the backlog, since the masters started.",
		func(s *vitals.Summary) float64 { return float64(s.PartialSyncs) },
	},
	{
		"refused_partial_syncs", "Replicas for which the backlog was too short, since the masters started.",
		func(s *vitals.Summary) float64 { return float64(s.RefusedSyncs) },
	},
	{"used_memory_bytes", "Memory in use.", func(s *vitals.Summary) float64 { return float64(s.UsedMemory) }},
	{
		"max_memory_bytes", "Memory that may be used; 0 for no limit.",
		func(s *vitals.Summary) float64 { return float64(s.MaxMemory) },
	},
	{
		"memory_use_ratio", "Share of its maxmemory that the fullest master uses; 0 without a limit.",
		func(s *vitals.Summary) float64 { return s.MemoryUse },
	},
	{
		"memory_fragmentation_ratio", "Memory taken from the system for each byte in use, of the worst master.",
		func(s *vitals.Summary) float64 { return s.Fragmentation },
	},
	{
		"evicted_keys", "Buckets that had to go before they were full, since the masters started.",
		func(s *vitals.Summary) float64 { return float64(s.EvictedKeys) },
	},
	{
		"evicted_scripts", "Scripts that had to go, since the masters started (Redis 7.4 and later).",
		func(s *vitals.Summary) float64 { return float64(s.EvictedScripts) },
	},
	{
		"clients", "Connections, ours and those of others.",
		func(s *vitals.Summary) float64 { return float64(s.Clients) },
	},
	{"max_clients", "Connections that there may be.", func(s *vitals.Summary) float64 { return float64(s.MaxClients) }},
	{
		"commands_per_second", "Commands of the last moments.",
		func(s *vitals.Summary) float64 { return float64(s.OpsPerSecond) },
	},
	{
		"input_bytes", "Bytes received, since the masters started.",
		func(s *vitals.Summary) float64 { return float64(s.InputBytes) },
	},
	{
		"output_bytes", "Bytes sent, since the masters started.",
		func(s *vitals.Summary) float64 { return float64(s.OutputBytes) },
	},
	{
		"last_fork_seconds", "How long the newest fork stopped the master it took longest at.",
		func(s *vitals.Summary) float64 { return float64(s.LastForkMicros) / 1e6 },
	},
	{
		"saving", "1 while a snapshot or a rewrite of the log runs anywhere.",
		func(s *vitals.Summary) float64 { return float64(s.Saving) },
	},
	{
		"slow_commands", "Length of the slow log; 0 where +slowlog|len is not allowed.",
		func(s *vitals.Summary) float64 { return float64(s.SlowCommands) },
	},
}

type redisGauge struct {
	name, help string
	value      func(*vitals.Summary) float64
}

func (g redisGauge) metric() Metric {
	return Metric{"ratelimit_redis_" + g.name, Gauge, nil, g.help, nil}
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
		c.gauges = append(c.gauges, g.metric().desc())
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
		ch <- prometheus.MustNewConstMetric(c.gauges[i], prometheus.GaugeValue, g.value(&now))
	}
}
