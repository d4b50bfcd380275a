package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/honestlimit/ratelimit/internal/sentinel"
)

// SentinelEvents counts what Sentinels announce.
type SentinelEvents struct{ total *prometheus.CounterVec }

// NewSentinelEvents returns a counter of announcements, with a series for each event that is told apart.
func NewSentinelEvents(reg prometheus.Registerer) *SentinelEvents {
	e := &SentinelEvents{total: sentinelEventsTotal.counterVec(reg)}
	for _, name := range sentinel.EventNames() {
		e.total.WithLabelValues(name)
	}
	return e
}

// Observe counts one announcement of one Sentinel (sentinel.Hooks.Event).
func (e *SentinelEvents) Observe(_ string, event sentinel.Event) {
	e.total.WithLabelValues(event.Name).Inc()
}

// sentinelCollector reads a watcher when it is scraped.
type sentinelCollector struct {
	stats    func() sentinel.Stats
	gauges   []sentinelGauge
	down     *prometheus.Desc
	switches *prometheus.Desc
	took     *prometheus.Desc
	age      *prometheus.Desc
}

// sentinelGauge is a number that is always there.
type sentinelGauge struct {
	desc *prometheus.Desc
	read func(sentinel.Stats) float64
}

// WatchSentinels registers metrics that show what a watcher knows whenever they are read; stats is
// (*sentinel.Watcher).Stats.
func WatchSentinels(reg prometheus.Registerer, stats func() sentinel.Stats) {
	count := func(read func(sentinel.Stats) int) func(sentinel.Stats) float64 {
		return func(s sentinel.Stats) float64 { return float64(read(s)) }
	}
	reg.MustRegister(&sentinelCollector{
		stats: stats,
		gauges: []sentinelGauge{
			{sentinelsKnown.desc(), count(func(s sentinel.Stats) int { return s.Known })},
			{sentinelsReachable.desc(), count(func(s sentinel.Stats) int { return s.Reachable })},
			{sentinelsAgreeing.desc(), count(func(s sentinel.Stats) int { return s.Agreeing })},
			{sentinelQuorum.desc(), func(s sentinel.Stats) float64 { return flag(s.Quorum.OK) }},
			{sentinelMasterKnown.desc(), func(s sentinel.Stats) float64 { return flag(s.Master != "") }},
			{sentinelEpoch.desc(), func(s sentinel.Stats) float64 { return float64(s.Epoch) }},
			{sentinelReplicas.desc(), count(func(s sentinel.Stats) int { return len(s.Replicas) })},
			{sentinelReplicasHealthy.desc(), count(sentinel.Stats.HealthyReplicas)},
			{sentinelReplicaLag.desc(), func(s sentinel.Stats) float64 { return float64(s.Lag()) }},
			{sentinelReplicaLinkDown.desc(), func(s sentinel.Stats) float64 { return seconds(s.LinkDown()) }},
		},
		down: sentinelMasterDown.desc(), switches: sentinelSwitchesTotal.desc(),
		took: sentinelFailoverSeconds.desc(), age: sentinelFailoverAge.desc(),
	})
}

// Describe implements prometheus.Collector.
func (c *sentinelCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, g := range c.gauges {
		ch <- g.desc
	}
	for _, d := range [...]*prometheus.Desc{c.down, c.switches, c.took, c.age} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *sentinelCollector) Collect(ch chan<- prometheus.Metric) {
	now := c.stats()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for _, g := range c.gauges {
		gauge(g.desc, g.read(now))
	}
	gauge(c.down, flag(now.SDown), "s_down")
	gauge(c.down, flag(now.ODown), "o_down")
	ch <- prometheus.MustNewConstMetric(c.switches, prometheus.CounterValue, float64(now.Switches))
	if !now.FailoverEnded.IsZero() {
		gauge(c.took, seconds(now.FailoverTook))
		gauge(c.age, seconds(time.Since(now.FailoverEnded)))
	}
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
