package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// Store counts and times what a Redis store does, which it is told of through its Hooks.
type Store struct {
	roundTrip, batch, dialing       prometheus.Histogram
	moves                           prometheus.Counter
	errors, dropped, dials, reloads *prometheus.CounterVec
}

// NewStore returns an observer of a Redis store.
func NewStore(reg prometheus.Registerer) *Store {
	s := &Store{
		roundTrip: storeRoundTripSeconds.histogram(reg),
		batch:     storeBatchCalls.histogram(reg),
		dialing:   storeDialSeconds.histogram(reg),
		moves:     storeMovesTotal.counter(reg),
		errors:    storeErrorsTotal.counterVec(reg),
		dropped:   storeDroppedTotal.counterVec(reg),
		dials:     storeDialsTotal.counterVec(reg),
		reloads:   storeReloadsTotal.counterVec(reg),
	}
	// Series that exist from the start show their first failure as a rise.
	for _, c := range failure.Causes() {
		if breaksRoundTrips(c) {
			s.errors.WithLabelValues(c.String())
		}
	}
	for _, c := range [...]failure.Cause{failure.CauseQueueFull, failure.CauseDropped} {
		s.dropped.WithLabelValues(c.String())
	}
	s.dials.WithLabelValues(failure.CauseNone.String())
	s.reloads.WithLabelValues(failure.CauseNone.String())
	return s
}

// breaksRoundTrips tells whether a round trip can fail of c: a reply, or a broken connection, says so.
func breaksRoundTrips(c failure.Cause) bool {
	switch c.Outcome() {
	case failure.NoScript:
		return true
	case failure.ConnectionError:
		return c != failure.CauseDial && c != failure.CauseNotConnected
	case failure.Timeout:
		return c == failure.CauseIOTimeout
	case failure.Success, failure.BreakerOpen:
	}
	return false
}

// Hooks are what the store must be configured with. Panicked is left to the caller.
func (s *Store) Hooks() redisstore.Hooks {
	return redisstore.Hooks{
		RoundTrip: s.roundTripped,
		Dropped: func(c failure.Cause, calls int) {
			s.dropped.WithLabelValues(c.String()).Add(float64(calls))
		},
		Dialed:   s.dialed,
		Moved:    func(string, string) { s.moves.Inc() },
		Reloaded: func(c failure.Cause) { s.reloads.WithLabelValues(c.String()).Inc() },
	}
}

func (s *Store) dialed(took time.Duration, c failure.Cause) {
	s.dials.WithLabelValues(c.String()).Inc()
	if c == failure.CauseNone {
		s.dialing.Observe(seconds(took))
	}
}

func (s *Store) roundTripped(took time.Duration, calls int, c failure.Cause) {
	s.roundTrip.Observe(seconds(took))
	s.batch.Observe(float64(calls))
	if c != failure.CauseNone {
		s.errors.WithLabelValues(c.String()).Inc()
	}
}

// storeCollector reads a Redis store when it is scraped.
type storeCollector struct {
	stats                              func() redisstore.Stats
	lanes, connected, queued, inFlight *prometheus.Desc
	denials, denied                    *prometheus.Desc
}

// WatchStore registers metrics that show a Redis store as it stands whenever they are read; stats is
// (*redisstore.Store).Stats.
func WatchStore(reg prometheus.Registerer, stats func() redisstore.Stats) {
	reg.MustRegister(&storeCollector{
		stats: stats, lanes: storeLanes.desc(), connected: storeConnected.desc(), queued: storeQueueDepth.desc(),
		inFlight: storeInFlight.desc(), denials: denyCacheTotal.desc(), denied: denyCacheEntries.desc(),
	})
}

// Describe implements prometheus.Collector.
func (c *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{c.lanes, c.connected, c.queued, c.inFlight, c.denials, c.denied} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *storeCollector) Collect(ch chan<- prometheus.Metric) {
	now := c.stats()
	for _, g := range [...]struct {
		desc  *prometheus.Desc
		value int
	}{
		{c.lanes, now.Lanes},
		{c.connected, now.Connected},
		{c.queued, now.Queued},
		{c.inFlight, now.InFlight},
		{c.denied, now.DenyCache.Entries},
	} {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(g.value))
	}
	for result, count := range map[string]uint64{
		"hit": now.DenyCache.Hits, "kept": now.DenyCache.Kept, "evicted": now.DenyCache.Evicted,
	} {
		ch <- prometheus.MustNewConstMetric(c.denials, prometheus.CounterValue, float64(count), result)
	}
}
