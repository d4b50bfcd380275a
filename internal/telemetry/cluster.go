package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/honestlimit/ratelimit/internal/cluster"
	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// clusterCollector reads a Cluster's store when it is scraped.
type clusterCollector struct {
	stats                                             func() cluster.Stats
	shards, slots, age, reloads, redirects, crossSlot *prometheus.Desc
	refunds                                           *prometheus.Desc
}

// WatchCluster registers metrics that show a Cluster's store as it stands whenever they are read; stats is
// (*cluster.Store).Stats. What its shards have in common with one server WatchStore shows, of the sum over all.
func WatchCluster(reg prometheus.Registerer, stats func() cluster.Stats) {
	reg.MustRegister(&clusterCollector{
		stats: stats, shards: clusterShards.desc(), slots: clusterSlots.desc(), age: clusterTopologyAge.desc(),
		reloads: clusterReloadsTotal.desc(), redirects: clusterRedirectsTotal.desc(),
		crossSlot: clusterCrossSlotTotal.desc(), refunds: clusterRefundsTotal.desc(),
	})
}

// Describe implements prometheus.Collector.
func (c *clusterCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{
		c.shards, c.slots, c.age, c.reloads, c.redirects, c.crossSlot, c.refunds,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *clusterCollector) Collect(ch chan<- prometheus.Metric) {
	now := c.stats()
	states := map[failure.State]int{failure.Closed: 0, failure.Open: 0, failure.HalfOpen: 0}
	for _, s := range now.Shards {
		states[s.Breaker.State]++
	}
	for state, n := range states {
		ch <- prometheus.MustNewConstMetric(c.shards, prometheus.GaugeValue, float64(n), state.String())
	}
	ch <- prometheus.MustNewConstMetric(c.slots, prometheus.GaugeValue, float64(now.Slots))
	if !now.Seen.IsZero() {
		ch <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, seconds(time.Since(now.Seen)))
	}
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	count(c.reloads, now.Reloads-now.ReloadsFailed, "ok")
	count(c.reloads, now.ReloadsFailed, "failed")
	count(c.redirects, now.Redirects.Moved, redisstore.Moved.String())
	count(c.redirects, now.Redirects.Ask, redisstore.Ask.String())
	count(c.redirects, now.Redirects.TryAgain, redisstore.TryAgain.String())
	count(c.redirects, now.Redirects.ClusterDown, redisstore.ClusterDown.String())
	count(c.crossSlot, now.CrossSlot)
	count(c.refunds, now.Refunds.Done, "done")
	count(c.refunds, now.Refunds.Late, "late")
	count(c.refunds, now.Refunds.Lost, "lost")
}
