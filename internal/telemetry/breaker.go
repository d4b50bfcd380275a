package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// Transitions counts the moves of a breaker, which it is told of through Observe.
type Transitions struct{ total *prometheus.CounterVec }

// NewTransitions returns a counter of moves, with a series for each move that a breaker can make.
func NewTransitions(reg prometheus.Registerer) *Transitions {
	t := &Transitions{total: breakerTransitionsTotal.counterVec(reg)}
	for _, move := range [...][2]failure.State{
		{failure.Closed, failure.Open},
		{failure.Open, failure.HalfOpen},
		{failure.HalfOpen, failure.Open},
		{failure.HalfOpen, failure.Closed},
	} {
		t.total.WithLabelValues(move[0].String(), move[1].String())
	}
	return t
}

// Observe counts one move (failure.BreakerConfig.OnTransition).
func (t *Transitions) Observe(moved failure.Transition) {
	t.total.WithLabelValues(moved.From.String(), moved.To.String()).Inc()
}

// breakerCollector reads a breaker when it is scraped.
type breakerCollector struct {
	breaker         *failure.Breaker
	state, failures *prometheus.Desc
}

// WatchBreaker registers gauges that show breaker as it stands whenever they are read.
func WatchBreaker(reg prometheus.Registerer, breaker *failure.Breaker) {
	reg.MustRegister(&breakerCollector{
		breaker: breaker, state: breakerState.desc(), failures: breakerFailures.desc(),
	})
}

// Describe implements prometheus.Collector.
func (c *breakerCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.state
	ch <- c.failures
}

// Collect implements prometheus.Collector.
func (c *breakerCollector) Collect(ch chan<- prometheus.Metric) {
	now := c.breaker.Snapshot()
	for _, s := range [...]failure.State{failure.Closed, failure.Open, failure.HalfOpen} {
		is := 0.0
		if s == now.State {
			is = 1
		}
		ch <- prometheus.MustNewConstMetric(c.state, prometheus.GaugeValue, is, s.String())
	}
	ch <- prometheus.MustNewConstMetric(c.failures, prometheus.GaugeValue, float64(now.Failures))
}
