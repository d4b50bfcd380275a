package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/honestlimit/ratelimit/internal/memstore"
)

// memoryCollector reads the embedded store when it is scraped.
type memoryCollector struct {
	stats            func() memstore.Stats
	buckets, dropped *prometheus.Desc
}

// WatchMemory registers metrics that show the embedded store as it stands whenever they are read; stats is
// (*memstore.Store).Stats.
func WatchMemory(reg prometheus.Registerer, stats func() memstore.Stats) {
	reg.MustRegister(&memoryCollector{stats: stats, buckets: memoryBuckets.desc(), dropped: memoryDroppedTotal.desc()})
}

// Describe implements prometheus.Collector.
func (c *memoryCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.buckets
	ch <- c.dropped
}

// Collect implements prometheus.Collector.
func (c *memoryCollector) Collect(ch chan<- prometheus.Metric) {
	now := c.stats()
	ch <- prometheus.MustNewConstMetric(c.buckets, prometheus.GaugeValue, float64(now.Buckets))
	ch <- prometheus.MustNewConstMetric(c.dropped, prometheus.CounterValue, float64(now.Expired), "full")
	ch <- prometheus.MustNewConstMetric(c.dropped, prometheus.CounterValue, float64(now.Evicted), "evicted")
}
