package main

import (
	"context"
	"errors"
	"time"

	"github.com/honestlimit/ratelimit/internal/load"
	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/test/bench/plot"
	"github.com/honestlimit/ratelimit/test/sheet"
)

// outageRow is one state of Redis, held from the first request to the last.
type outageRow struct {
	Name   string
	Rounds measured
}

// outageCase is a subject and what is done to its Redis just before the load.
type outageCase struct {
	name string
	kind kind
	harm func(*process.Process) error
}

func healthy(*process.Process) error { return nil }

// Rows of the outage table.
const (
	redisHealthy = "Redis healthy"
	redisFrozen  = "Redis frozen"
	redisDead    = "Redis dead"
)

func (b *bench) outageCases() []outageCase {
	held := redisKind
	// So many failures never come: every single request waits for its budget to run out.
	held.flags = []string{"--breaker-failures", "1000000"}
	cases := []outageCase{
		{redisHealthy, redisKind, healthy},
		{redisFrozen, redisKind, (*process.Process).Freeze},
		{redisDead, redisKind, (*process.Process).Kill},
		{"Redis frozen, breaker held closed", held, (*process.Process).Freeze},
		{"no Redis: embedded store", embeddedKind, nil},
		{"no limiting: constant answer", floorKind, nil},
	}
	if b.opts.peer.command == "" {
		return cases
	}
	p := b.opts.peer.kind()
	return append(cases,
		outageCase{p.name + ", " + redisHealthy, p, healthy},
		outageCase{p.name + ", " + redisFrozen, p, (*process.Process).Freeze},
		outageCase{p.name + ", " + redisDead, p, (*process.Process).Kill},
	)
}

// outage measures what clients see while Redis is in trouble. The moment of the failure is part of it.
func (b *bench) outage(ctx context.Context) error {
	cases := b.outageCases()
	rows := make([]outageRow, len(cases))
	for round := range b.opts.rounds {
		for i, c := range cases {
			rows[i].Name = c.name
			b.lab.sayf("outage, round %d of %d: %s", round+1, b.opts.rounds, c.name)
			report, err := b.outageRun(ctx, c)
			if err != nil {
				return err
			}
			rows[i].Rounds = append(rows[i].Rounds, report)
		}
	}
	b.results.Outage = rows
	return nil
}

func (b *bench) outageRun(ctx context.Context, c outageCase) (_ load.Report, err error) {
	s, err := b.lab.start(ctx, c.kind)
	if err != nil {
		return load.Report{}, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	// Connections, stacks and buckets are there when the trouble begins.
	if _, err := b.lab.run(ctx, s, keyed(1000), b.opts.warmup); err != nil {
		return load.Report{}, err
	}
	if c.harm != nil {
		if err := c.harm(s.redis); err != nil {
			return load.Report{}, err
		}
	}
	cfg := keyed(1000)
	cfg.Warmup = time.Nanosecond // none, where 0 would mean the usual one
	return b.lab.run(ctx, s, cfg, b.opts.duration)
}

func (r *results) outageTable() string {
	t := sheet.NewTable("", "requests/s", "p50", "p99", "p99.9", "worst", "answers")
	for _, row := range r.Outage {
		t.Row(row.Name, whole(over(row.Rounds, perSecond).Median), span(over(row.Rounds, p50).Median),
			span(over(row.Rounds, p99).Median), span(over(row.Rounds, p999).Median),
			span(over(row.Rounds, worst).Median), answersOf(row.Rounds))
	}
	return t.String()
}

func (r *results) outagePlot() []byte {
	var lines []plot.Series
	for _, row := range r.Outage {
		switch row.Name {
		case redisHealthy, redisFrozen, redisDead:
			lines = append(lines, percentiles(row.Name, row.Rounds))
		}
	}
	return percentileChart("Latency while Redis is in trouble, closed loop of 64 requests", lines)
}

// Of the short freeze.
const (
	freezeRate = 10_000 // requests offered each second
	freezeFor  = 100 * time.Millisecond
	budget     = 20 * time.Millisecond // the service's default
)

// freezeRound is one short freeze under an open loop.
type freezeRound struct {
	Report load.Report
	// Dials is how often the service connected to Redis after the load had begun.
	Dials float64
}

// freeze stops Redis for 100 ms under 10,000 requests a second.
func (b *bench) freeze(ctx context.Context) error {
	b.results.Freeze = nil
	for round := range b.opts.rounds {
		b.lab.sayf("freeze, round %d of %d", round+1, b.opts.rounds)
		r, err := b.freezeRun(ctx)
		if err != nil {
			return err
		}
		b.results.Freeze = append(b.results.Freeze, r)
	}
	return nil
}

func (b *bench) freezeRun(ctx context.Context) (_ freezeRound, err error) {
	s, err := b.lab.start(ctx, redisKind)
	if err != nil {
		return freezeRound{}, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	before, err := scrape(ctx, s.admin)
	if err != nil {
		return freezeRound{}, err
	}
	cfg := keyed(1000)
	cfg.Rate, cfg.Warmup = freezeRate, time.Second
	cfg.Fault = &load.Fault{
		At: time.Second, For: freezeFor,
		Begin: func(context.Context) error { return s.redis.Freeze() },
		End:   func(context.Context) error { return s.redis.Thaw() },
	}
	report, err := b.lab.run(ctx, s, cfg, 3*time.Second)
	if err == nil && report.Fault == nil {
		err = errors.New("the fault did not begin")
	}
	if err != nil {
		return freezeRound{}, err
	}
	after, err := scrape(ctx, s.admin)
	if err != nil {
		return freezeRound{}, err
	}
	return freezeRound{Report: report, Dials: after[dialsMetric] - before[dialsMetric]}, nil
}

// lost is how many requests were not decided by the store, because of the freeze.
func (f freezeRound) lost() float64 {
	return float64(f.Report.All.Errors + f.Report.All.Degraded + f.Report.All.Unanswered + f.Report.NotOffered)
}

// unavoidable is how many arrived when Redis was to stay frozen for longer than the budget: nothing that asks Redis
// could have answered them in time.
func (f freezeRound) unavoidable() float64 {
	frozen := f.Report.Fault.Ended - f.Report.Fault.Began
	return freezeRate * max(0, frozen-budget.Seconds())
}

func (f freezeRound) excess() float64 { return f.lost() / max(1, f.unavoidable()) }

// normal is when the last answer came that was not an ordinary one, after the thaw, in seconds.
func (f freezeRound) normal() float64 {
	if f.Report.Fault.Settled > 0 {
		return f.Report.Fault.Settled
	}
	return f.Report.Fault.Recovery
}

func (r *results) freezeTable() string {
	t := sheet.NewTable("", "median", "from", "to")
	add := func(name string, figure func(freezeRound) float64, format func(float64) string) {
		s := over(r.Freeze, figure)
		t.Row(name, format(s.Median), format(s.Min), format(s.Max))
	}
	add("frozen for", func(f freezeRound) float64 { return f.Report.Fault.Ended - f.Report.Fault.Began }, span)
	add("requests not decided by Redis", freezeRound.lost, whole)
	add("of them unavoidable: due while Redis had more than the budget to sleep", freezeRound.unavoidable, whole)
	add("ratio", freezeRound.excess, times)
	add("connections to Redis opened", func(f freezeRound) float64 { return f.Dials }, whole)
	add("first ordinary answer after the thaw", func(f freezeRound) float64 { return f.Report.Fault.Recovery }, span)
	add("last answer that was not ordinary, after the thaw", freezeRound.normal, span)
	add("p99 of the whole run", func(f freezeRound) float64 { return f.Report.All.Latency.P99 }, span)
	add("longest any request took", func(f freezeRound) float64 { return f.Report.All.Latency.Max }, span)
	return t.String()
}
