// Package drill breaks a Redis topology on purpose while a real service decides a steady load, and says what came of
// it: when the fault was noticed, when the store enforced limits again, what every decision was meanwhile, and whether
// any bound was broken (internal/drill/journal). Run starts everything itself, on loopback; Attach only looks at what
// somebody else runs.
//
// It knows the service by its command line, its protocol and its admin port, and imports nothing of how it decides.
// Run and Attach keep no state between calls; whatever they start has ended when they return.
package drill

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/redisstore"
)

// Run plays the category's scenario on a topology of its own and judges it. The report is nil if the run could not be
// finished; then the error says why. A run that was finished and failed its checks has a report and no error.
func Run(ctx context.Context, cfg Config) (*journal.Report, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s, err := find(cfg.Category, cfg.Variant)
	if err != nil {
		return nil, err
	}
	cfg.Variant = s.variant
	_, report, err := run(ctx, cfg, s)
	return report, err
}

// run plays the scenario on a stage that it builds and takes down again.
func run(ctx context.Context, cfg Config, s scenario) (*journal.Journal, *journal.Report, error) {
	redisstore.Silence() // of nodes that are down on purpose there would be a line for each attempt
	dir, err := os.MkdirTemp("", "drill-")
	if err != nil {
		return nil, nil, fmt.Errorf("drill: %w", err)
	}
	defer os.RemoveAll(dir)
	st, err := openStage(ctx, cfg, s, dir)
	if err != nil {
		return nil, nil, err
	}
	report, err := st.run(ctx)
	return st.rec.finish(), report, errors.Join(err, st.close())
}
