package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/honestlimit/ratelimit/internal/load"
	"github.com/honestlimit/ratelimit/test/bench/plot"
	"github.com/honestlimit/ratelimit/test/sheet"
)

// soakFigures are what a long run looked like from outside.
type soakFigures struct {
	Seed    uint64
	Freezes int
	Frozen  float64 // seconds altogether
	Samples []soakSample
	Report  load.Report
}

// soakSample is one look: Memory is the resident set in bytes.
type soakSample struct{ Seconds, Memory, Goroutines, PerSecond float64 }

// Bounds of growth from the first third of a run to the last. They are wide: a leak that matters passes them in ten
// minutes, a collector's mood does not.
const (
	soakFactor     = 1.5
	soakMemory     = 32 << 20
	soakGoroutines = 100
)

// soak loads the service as much as it takes while Redis freezes again and again. What came of it is for
// soakFigures.verdict to say.
func (b *bench) soak(ctx context.Context) (err error) {
	s, err := b.lab.start(ctx, redisKind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	run := &soakRun{subject: s, figures: soakFigures{Seed: rand.Uint64()}, started: time.Now()}
	b.lab.sayf("soak: %v at saturation with random freezes of Redis, seed %d", b.opts.soak, run.figures.Seed)
	background, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var freezeErr, sampleErr error
	wg.Go(func() { freezeErr = run.freeze(background) })
	wg.Go(func() { sampleErr = run.sample(background, max(time.Second, b.opts.soak/300)) })
	cfg := many()
	cfg.OnProgress = run.progress
	report, err := b.lab.run(ctx, s, cfg, b.opts.soak)
	stop()
	wg.Wait()
	if err := errors.Join(err, freezeErr, sampleErr, s.server.Exited()); err != nil {
		return err
	}
	run.figures.Report = report
	b.results.Soak = &run.figures
	return nil
}

// soakRun is a soak that goes on.
type soakRun struct {
	subject *subject
	figures soakFigures
	started time.Time

	mu   sync.Mutex
	rate float64
}

func (r *soakRun) progress(p load.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rate = p.PerSecond
}

// freeze stops Redis for 10 to 500 ms, 1 to 10 s apart: some freezes only cost the requests in flight, others open the
// breaker.
func (r *soakRun) freeze(ctx context.Context) error {
	rng := rand.New(rand.NewPCG(r.figures.Seed, 0))
	between := func(low, high time.Duration) time.Duration { return low + time.Duration(rng.Int64N(int64(high-low))) }
	for pause(ctx, between(time.Second, 10*time.Second)) {
		if err := r.subject.redis.Freeze(); err != nil {
			return err
		}
		began := time.Now()
		pause(ctx, between(10*time.Millisecond, 500*time.Millisecond))
		if err := r.subject.redis.Thaw(); err != nil {
			return err
		}
		r.figures.Freezes++
		r.figures.Frozen += time.Since(began).Seconds()
	}
	return nil
}

// sample looks at the service's own metrics.
func (r *soakRun) sample(ctx context.Context, every time.Duration) error {
	for pause(ctx, every) {
		m, err := scrape(ctx, r.subject.admin)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		r.mu.Lock()
		rate := r.rate
		r.mu.Unlock()
		r.figures.Samples = append(r.figures.Samples, soakSample{
			Seconds: time.Since(r.started).Seconds(), PerSecond: rate,
			Memory: m[memoryMetric], Goroutines: m[goroutinesMetric],
		})
	}
	return nil
}

// pause tells whether ctx lasted as long.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// thirds are the medians of a figure in the first third of the samples and in the last.
func (f *soakFigures) thirds(figure func(soakSample) float64) (first, last float64) {
	n := len(f.Samples) / 3
	return over(f.Samples[:n], figure).Median, over(f.Samples[len(f.Samples)-n:], figure).Median
}

func memoryOf(s soakSample) float64     { return s.Memory }
func goroutinesOf(s soakSample) float64 { return s.Goroutines }

// verdict is nil if nothing grew beyond the bounds.
func (f *soakFigures) verdict() error {
	if f == nil || len(f.Samples) < 3 {
		return errors.New("soak: too few samples to compare")
	}
	var faults []error
	if first, last := f.thirds(memoryOf); last > first*soakFactor+soakMemory {
		faults = append(faults, fmt.Errorf("soak: memory grew from %s to %s", mebibytes(first), mebibytes(last)))
	}
	if first, last := f.thirds(goroutinesOf); last > first*soakFactor+soakGoroutines {
		faults = append(faults, fmt.Errorf("soak: goroutines grew from %s to %s", whole(first), whole(last)))
	}
	return errors.Join(faults...)
}

func mebibytes(v float64) string { return digits(v/(1<<20), 3) + " MiB" }

func (r *results) soakText() string {
	f := r.Soak
	if f == nil {
		return "Not measured yet: `make soak`.\n"
	}
	t := sheet.NewTable("", "first third", "last third", "bound")
	memory, memoryAfter := f.thirds(memoryOf)
	goroutines, goroutinesAfter := f.thirds(goroutinesOf)
	t.Row("resident memory", mebibytes(memory), mebibytes(memoryAfter), mebibytes(memory*soakFactor+soakMemory))
	t.Row("goroutines", whole(goroutines), whole(goroutinesAfter), whole(goroutines*soakFactor+soakGoroutines))
	result := "Flat: within the bounds."
	if err := f.verdict(); err != nil {
		result = "**It grew**: " + err.Error()
	}
	const text = "%s of saturation, %d freezes of Redis of 10 to 500 ms (%s altogether), %s requests: %s\n\n" +
		"%s\n%s\n\n%s"
	return fmt.Sprintf(text,
		span(f.Report.All.Seconds), f.Freezes, span(f.Frozen), plot.Short(float64(f.Report.All.Requests)),
		answersOf(measured{f.Report}), t.String(), result, image("soak", "Memory and goroutines over the soak"))
}

// soakPlot shows each figure in per cent of its median, so that one axis fits all.
func (r *results) soakPlot() []byte {
	c := plot.Chart{
		Title: "Soak: in per cent of each one's median",
		X:     plot.Axis{Label: "seconds", Scale: plot.Linear}, Y: plot.Axis{Label: "%", Scale: plot.Linear},
	}
	for _, line := range []struct {
		name   string
		figure func(soakSample) float64
	}{
		{"resident memory", memoryOf},
		{"goroutines", goroutinesOf},
		{"requests/s", func(s soakSample) float64 { return s.PerSecond }},
	} {
		middle := max(1, over(r.Soak.Samples, line.figure).Median)
		s := plot.Series{Name: line.name}
		for _, p := range r.Soak.Samples {
			s.Points = append(s.Points, plot.Point{X: p.Seconds, Y: 100 * line.figure(p) / middle})
		}
		c.Series = append(c.Series, s)
	}
	return c.SVG()
}
