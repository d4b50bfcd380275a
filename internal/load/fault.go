package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// endTimeout bounds Fault.End, which also runs when the run was cancelled.
const endTimeout = 30 * time.Second

// Fault is something that breaks in the middle of a run, and how it is mended.
type Fault struct {
	// At is when it begins, counted from the end of the warm-up. No default.
	At time.Duration
	// For is how long it lasts. Default: as long as Begin takes.
	For time.Duration
	// Begin breaks something. If it returns an error the run ends. No default.
	Begin func(context.Context) error
	// End mends it. It is called if Begin was, whatever came of Begin or of the run, with a context that a cancelled
	// run does not cancel. Default: nothing is mended, and the fault counts as over when For has passed.
	End func(context.Context) error
}

// never is a moment that does not come.
const never = math.MaxInt64

// window is when the fault was, in nanoseconds since the start of the run. Safe for concurrent use.
type window struct{ begin, end atomic.Int64 }

func (w *window) reset() {
	w.begin.Store(never)
	w.end.Store(never)
}

// phase is where a request is that lived from one moment to another. If any part of its life was in the fault, it is
// in the fault.
func (w *window) phase(from, to time.Duration) phase {
	switch {
	case int64(to) < w.begin.Load():
		return before
	case int64(from) < w.end.Load():
		return during
	default:
		return after
	}
}

func (w *window) active() bool { return w.begin.Load() != never && w.end.Load() == never }

// phase is a part of the run.
type phase uint8

const (
	before phase = iota // indexes shard.tallies; a run without a fault is all before
	during
	after
	phases
)

func (p phase) String() string { return [...]string{"before", "during", "after"}[p] }

// cause waits for its moment, breaks, waits and mends. done tells that the run is over.
func (r *runner) cause(ctx context.Context, done <-chan struct{}) error {
	f := r.cfg.Fault
	if f == nil {
		return nil
	}
	at := r.cfg.Warmup + f.At
	if !r.sleepUntil(at, done) {
		return fmt.Errorf("load: the run ended before the fault at %v", f.At)
	}
	r.dialsBefore = r.target.opened.Load()
	r.fault.begin.Store(int64(r.since()))
	err := f.Begin(ctx)
	if err != nil {
		err = fmt.Errorf("load: causing the fault: %w", err)
		r.end()
	} else if f.For > 0 {
		r.sleepUntil(time.Duration(r.fault.begin.Load())+f.For, done)
	}
	err = errors.Join(err, f.mend(ctx))
	r.dialsDuring = r.target.opened.Load()
	r.fault.end.Store(int64(r.since()))
	return err
}

func (f *Fault) mend(ctx context.Context) error {
	if f.End == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := f.End(ctx); err != nil {
		return fmt.Errorf("load: ending the fault: %w", err)
	}
	return nil
}

// sleepUntil waits for a moment of the run and tells whether it came before done was closed.
func (r *runner) sleepUntil(at time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(at - r.since())
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-done:
		return false
	}
}
