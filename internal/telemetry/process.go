package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Build says what was built.
type Build struct{ Version, Revision, GoVersion string }

// WatchProcess registers what was built, and the metrics of the Go runtime and of the process.
func WatchProcess(reg prometheus.Registerer, b Build) {
	buildInfo.gaugeVec(reg).WithLabelValues(b.Version, b.Revision, b.GoVersion).Set(1)
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}
