package load

import "time"

// lookout reports progress.
type lookout struct {
	run      *runner
	ticker   *time.Ticker
	tick     <-chan time.Time // nil if nobody wants to know
	answered int64
	last     time.Duration
}

func newLookout(r *runner) *lookout {
	l := &lookout{run: r}
	if r.cfg.OnProgress != nil {
		l.ticker = time.NewTicker(progressInterval)
		l.tick = l.ticker.C
	}
	return l
}

func (l *lookout) stop() {
	if l.ticker != nil {
		l.ticker.Stop()
	}
}

func (l *lookout) report() {
	var sum look
	for _, s := range l.run.shards {
		sum.merge(s.glance())
	}
	now := l.run.since()
	l.answered += sum.answered
	l.run.cfg.OnProgress(Progress{
		Elapsed:     now,
		Total:       l.run.total(),
		WarmingUp:   !l.run.measured(now),
		FaultActive: l.run.fault.active(),
		Answered:    l.answered,
		PerSecond:   ratio(float64(sum.answered), seconds(now-l.last)),
		OverLimit:   sum.overLimit,
		Errors:      sum.errors,
		Worst:       sum.worst,
	})
	l.last = now
}
