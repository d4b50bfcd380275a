package telemetry

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Kind is the type of a metric.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Metric describes one metric.
type Metric struct {
	Name   string
	Kind   Kind
	Labels []string
	Help   string
	// Buckets are the upper bounds of a histogram.
	Buckets []float64
}

// WriteCatalogue writes the catalogue as a Markdown table.
func WriteCatalogue(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range Catalogue() {
		labels := "-"
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, labels, m.Help)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (m Metric) counterVec(reg prometheus.Registerer) *prometheus.CounterVec {
	return promauto.With(reg).NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

func (m Metric) counter(reg prometheus.Registerer) prometheus.Counter {
	return promauto.With(reg).NewCounter(prometheus.CounterOpts{Name: m.Name, Help: m.Help})
}

func (m Metric) gauge(reg prometheus.Registerer) prometheus.Gauge {
	return promauto.With(reg).NewGauge(prometheus.GaugeOpts{Name: m.Name, Help: m.Help})
}

func (m Metric) gaugeVec(reg prometheus.Registerer) *prometheus.GaugeVec {
	return promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

func (m Metric) histogram(reg prometheus.Registerer) prometheus.Histogram {
	return promauto.With(reg).NewHistogram(
		prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: m.Buckets})
}

func (m Metric) histogramVec(reg prometheus.Registerer) *prometheus.HistogramVec {
	return promauto.With(reg).NewHistogramVec(
		prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: m.Buckets}, m.Labels)
}

// desc is for collectors that make their metrics when they are asked.
func (m Metric) desc() *prometheus.Desc { return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil) }

func seconds(d time.Duration) float64 { return d.Seconds() }
