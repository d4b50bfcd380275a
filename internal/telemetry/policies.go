package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/honestlimit/ratelimit/pkg/policy"
)

// policiesCollector reads a source of policies when it is scraped.
type policiesCollector struct {
	status                                         func() policy.Status
	loads, info, count, age, stale, failing, watch *prometheus.Desc
}

// WatchPolicies registers metrics that show a source of policies as it stands whenever they are read; status is
// (*policy.Source).Status.
func WatchPolicies(reg prometheus.Registerer, status func() policy.Status) {
	reg.MustRegister(&policiesCollector{
		status: status,
		loads:  policyLoadsTotal.desc(), info: policyInfo.desc(), count: policyCount.desc(),
		age: policyAgeSeconds.desc(), stale: policyStale.desc(),
		failing: policyLastLoadFailed.desc(), watch: policyWatchFailed.desc(),
	})
}

// Describe implements prometheus.Collector.
func (c *policiesCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{c.loads, c.info, c.count, c.age, c.stale, c.failing, c.watch} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *policiesCollector) Collect(ch chan<- prometheus.Metric) {
	now := c.status()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(c.failing, oneIf(now.LastError))
	gauge(c.watch, oneIf(now.WatchError))
	for _, d := range now.Domains {
		for outcome, n := range d.Loads {
			ch <- prometheus.MustNewConstMetric(
				c.loads, prometheus.CounterValue, float64(n), d.Name, outcome.String())
		}
		gauge(c.count, float64(d.Policies), d.Name)
		gauge(c.stale, oneIf(d.LastError), d.Name)
		if d.Version == "" { // a new domain whose files were refused
			continue
		}
		gauge(c.info, 1, d.Name, d.Version)
		gauge(c.age, seconds(time.Since(d.LoadedAt)), d.Name)
	}
}

func oneIf(fault string) float64 {
	if fault != "" {
		return 1
	}
	return 0
}
