package main

import (
	"context"
	"errors"

	"github.com/honestlimit/ratelimit/test/sheet"
)

// knobRow is the service with one setting that differs from its default.
type knobRow struct {
	Name          string
	Rounds, Usual measured
}

// knobs are settings that one could think of changing.
var knobs = []kind{
	{name: "1 lane to Redis instead of 2", flags: []string{"--redis-lanes", "1"}},
	{name: "4 lanes", flags: []string{"--redis-lanes", "4"}},
	{name: "8 lanes", flags: []string{"--redis-lanes", "8"}},
	{name: "Go's own pace of collection, GOGC=100", env: []string{"GOGC=100"}},
	{name: "GOGC=1600", env: []string{"GOGC=1600"}},
	{name: "one core for the service, GOMAXPROCS=1", env: []string{"GOMAXPROCS=1"}},
}

// knobs measures what each setting changes, through Redis over 10,000 tenants.
func (b *bench) knobs(ctx context.Context) error {
	kinds := []kind{redisKind}
	rows := make([]knobRow, len(knobs))
	for i, k := range knobs {
		k.redis, k.start = true, (*lab).startService
		kinds = append(kinds, k)
		rows[i].Name = k.name
	}
	for round := range b.opts.rounds {
		b.lab.sayf("knobs, round %d of %d", round+1, b.opts.rounds)
		all, err := b.lab.startAll(ctx, kinds...)
		if err != nil {
			return err
		}
		if err = errors.Join(b.knobsRound(ctx, all, rows), all.stop()); err != nil {
			return err
		}
	}
	b.results.Knobs = rows
	return nil
}

// knobsRound runs the usual setting before each of the others, so that what is compared is close in time.
func (b *bench) knobsRound(ctx context.Context, all subjects, rows []knobRow) error {
	for i, s := range all[1:] {
		usual, err := b.lab.run(ctx, all[0], many(), b.opts.duration/2)
		if err != nil {
			return err
		}
		report, err := b.lab.run(ctx, s, many(), b.opts.duration/2)
		if err != nil {
			return err
		}
		rows[i].Usual, rows[i].Rounds = append(rows[i].Usual, usual), append(rows[i].Rounds, report)
	}
	return nil
}

func (r *results) knobTable() string {
	t := sheet.NewTable(
		"times the figure with the usual setting", "requests/s", "CPU in the service", "CPU in Redis", "p99",
	)
	for _, k := range r.Knobs {
		t.Row(k.Name, spreadOf(ratios(k.Rounds.figures(perSecond), k.Usual.figures(perSecond))).show(times),
			spreadOf(ratios(k.Rounds.figures(serviceCPU), k.Usual.figures(serviceCPU))).show(times),
			spreadOf(ratios(k.Rounds.figures(redisCPU), k.Usual.figures(redisCPU))).show(times),
			spreadOf(ratios(k.Rounds.figures(p99), k.Usual.figures(p99))).show(times))
	}
	return t.String()
}
