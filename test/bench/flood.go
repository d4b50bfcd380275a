package main

import (
	"context"
	"errors"
	"os/exec"
	"strings"

	"github.com/honestlimit/ratelimit/internal/load"
	"github.com/honestlimit/ratelimit/test/sheet"
)

// noDenyCache is the flag that has every denial decided by the store.
const noDenyCache = "--no-deny-cache"

// floodRow is one tenant that asks for far more than its limit.
type floodRow struct {
	Name   string
	Rounds measured
	// Calls are script calls to Redis each second, by round.
	Calls []float64
}

// flood measures what one tenant who asks without pause costs, with the deny cache and without.
func (b *bench) flood(ctx context.Context) error {
	help, err := exec.CommandContext(ctx, b.opts.binary, "serve", "--help").CombinedOutput()
	if err != nil {
		return err
	}
	b.results.Flood = nil
	if !strings.Contains(string(help), "deny-cache") {
		b.lab.sayf("flood: this binary has no deny cache")
		return nil
	}
	without := redisKind
	without.flags = []string{noDenyCache}
	cases := []struct {
		name string
		kind kind
	}{{"with the deny cache", redisKind}, {"without, " + noDenyCache, without}}
	rows := make([]floodRow, len(cases))
	for round := range b.opts.rounds {
		for i, c := range cases {
			b.lab.sayf("flood, round %d of %d: %s", round+1, b.opts.rounds, c.name)
			rows[i].Name = c.name
			if err := b.floodRun(ctx, c.kind, &rows[i]); err != nil {
				return err
			}
		}
	}
	b.results.Flood = rows
	return nil
}

func (b *bench) floodRun(ctx context.Context, k kind, row *floodRow) (err error) {
	s, err := b.lab.start(ctx, k)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	before, err := infoOf(ctx, s.redisAddr)
	if err != nil {
		return err
	}
	report, err := b.lab.run(ctx, s, load.Config{Domain: domain, Descriptors: endpoint("flood", "acme")}, b.opts.duration)
	if err != nil {
		return err
	}
	after, err := infoOf(ctx, s.redisAddr)
	if err != nil {
		return err
	}
	asked := calls(after, "evalsha") - calls(before, "evalsha")
	row.Calls = append(row.Calls, asked/(b.opts.warmup+b.opts.duration).Seconds())
	row.Rounds = append(row.Rounds, report)
	return nil
}

func (r *results) floodTable() string {
	if len(r.Flood) == 0 {
		return "This build has no deny cache: nothing to compare.\n"
	}
	t := sheet.NewTable("flood by one tenant, limit 100/s", "requests/s", "admitted/s", "CPU in the service",
		"CPU in Redis", "script calls/s", "p99")
	admitted := func(r load.Report) float64 { return float64(r.All.Admitted) / r.All.Seconds }
	for _, row := range r.Flood {
		t.Row(row.Name, thousands(over(row.Rounds, perSecond).Median), digits(over(row.Rounds, admitted).Median, 4),
			over(row.Rounds, serviceCPU).show(micros)+" µs", over(row.Rounds, redisCPU).show(micros)+" µs",
			whole(median(row.Calls)), millis(over(row.Rounds, p99).Median)+" ms")
	}
	return t.String()
}
