package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/honestlimit/ratelimit/internal/load"
	"github.com/honestlimit/ratelimit/test/bench/plot"
	"github.com/honestlimit/ratelimit/test/sheet"
)

// saturationRow is one subject under one workload.
type saturationRow struct {
	Subject, Workload string
	Rounds            measured
	// Allocations are objects allocated for each request, by round; H2load are requests a second by h2load.
	Allocations, H2load []float64
}

// saturation loads every subject as much as it takes, and then at 70 % of that.
func (b *bench) saturation(ctx context.Context) error {
	h2, err := newH2load(b.lab.dir)
	if err != nil {
		return err
	}
	b.results.Saturation = nil
	for round := range b.opts.rounds {
		all, err := b.lab.startAll(ctx, b.kinds()...)
		if err != nil {
			return err
		}
		err = b.saturationRound(ctx, all.rotated(round), round, h2)
		if err = errors.Join(err, all.stop()); err != nil {
			return err
		}
	}
	return nil
}

// kinds are what every round compares.
func (b *bench) kinds() []kind {
	kinds := []kind{floorKind, embeddedKind, redisKind}
	if b.opts.peer.command != "" {
		kinds = append(kinds, b.opts.peer.kind())
	}
	return kinds
}

func (b *bench) saturationRound(ctx context.Context, all subjects, round int, h2 *h2load) error {
	saturated := map[string]float64{}
	for _, w := range workloads {
		for _, s := range all {
			b.lab.sayf("saturation, round %d of %d: %s, %s", round+1, b.opts.rounds, s.name, w.name)
			cfg := many()
			if w.name == hotKey {
				cfg = hot()
			}
			cfg.Rate = w.part * saturated[s.name]
			row := b.saturationRow(s.name, w.name)
			if err := b.saturate(ctx, s, cfg, row); err != nil {
				return err
			}
			if w.part == 0 {
				saturated[s.name] = row.Rounds[len(row.Rounds)-1].All.RequestsPerSecond
			}
		}
	}
	if h2 == nil {
		return nil
	}
	for _, s := range all {
		rate, err := h2.run(ctx, b.opts, s.addr)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		row := b.saturationRow(s.name, hotKey)
		row.H2load = append(row.H2load, rate)
	}
	return nil
}

func (b *bench) saturate(ctx context.Context, s *subject, cfg load.Config, row *saturationRow) error {
	before, counted := allocations(ctx, s)
	report, err := b.lab.run(ctx, s, cfg, b.opts.duration)
	if err != nil {
		return err
	}
	row.Rounds = append(row.Rounds, report)
	if after, ok := allocations(ctx, s); ok && counted {
		// The warm-up is not in the report, but allocates as well.
		share := b.opts.duration.Seconds() / (b.opts.duration + b.opts.warmup).Seconds()
		row.Allocations = append(row.Allocations, (after-before)*share/float64(report.All.Requests))
	}
	return nil
}

// allocations is how many objects s has allocated so far, if it tells.
func allocations(ctx context.Context, s *subject) (float64, bool) {
	m, err := scrape(ctx, s.admin)
	if err != nil { // the peer has another admin port, if any
		return 0, false
	}
	n, ok := m[allocationsMetric]
	return n, ok
}

// saturationRow finds the row or makes it.
func (b *bench) saturationRow(subject, workload string) *saturationRow {
	for i := range b.results.Saturation {
		if r := &b.results.Saturation[i]; r.Subject == subject && r.Workload == workload {
			return r
		}
	}
	b.results.Saturation = append(b.results.Saturation, saturationRow{Subject: subject, Workload: workload})
	return &b.results.Saturation[len(b.results.Saturation)-1]
}

// row is the zero row if it was not measured.
func (r *results) row(subject, workload string) saturationRow {
	for _, row := range r.Saturation {
		if row.Subject == subject && row.Workload == workload {
			return row
		}
	}
	return saturationRow{}
}

// subjects are the names that were measured, the usual ones first: rounds begin with a different one each.
func (r *results) subjects() []string {
	names := []string{floorName, embeddedName, redisName}
	if p := r.peerName(); p != "" {
		names = append(names, p)
	}
	return names
}

// peerName is empty if no peer was measured.
func (r *results) peerName() string {
	for _, row := range r.Saturation {
		if n := row.Subject; n != floorName && n != embeddedName && n != redisName {
			return n
		}
	}
	return ""
}

// againstFloor is a figure of row divided by the floor's of the same round and workload.
func (r *results) againstFloor(row saturationRow, figure func(load.Report) float64) spread {
	base := r.row(floorName, row.Workload)
	return spreadOf(ratios(row.Rounds.figures(figure), base.Rounds.figures(figure)))
}

func (r *results) saturationTable(workload string) string {
	t := sheet.NewTable("", "requests/s", "of the floor's", "by h2load", "CPU in the service", "of the floor's",
		"CPU in Redis", "allocations", "p50", "p99", "p99.9")
	for _, name := range r.subjects() {
		row := r.row(name, workload)
		if len(row.Rounds) == 0 {
			continue
		}
		t.Row(name, over(row.Rounds, perSecond).show(thousands), r.againstFloor(row, perSecond).show(times),
			r.h2loadCell(row), over(row.Rounds, serviceCPU).show(micros)+" µs",
			r.againstFloor(row, serviceCPU).show(times), cpuCell(over(row.Rounds, redisCPU)),
			allocationsCell(row.Allocations), millis(over(row.Rounds, p50).Median)+" ms",
			millis(over(row.Rounds, p99).Median)+" ms", millis(over(row.Rounds, p999).Median)+" ms")
	}
	return t.String()
}

func (r *results) h2loadCell(row saturationRow) string {
	if len(row.H2load) == 0 {
		return "-"
	}
	ratio := spreadOf(ratios(row.H2load, r.row(floorName, row.Workload).H2load))
	return thousands(spreadOf(row.H2load).Median) + ", " + times(ratio.Median)
}

func cpuCell(s spread) string {
	if s.Max == 0 {
		return "-"
	}
	return s.show(micros) + " µs"
}

func allocationsCell(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	return whole(median(values))
}

func (r *results) openTable() string {
	t := sheet.NewTable("", "", "offered/s", "p50", "p99", "p99.9", "worst", "CPU in the service",
		"CPU in Redis", "CPU of the load")
	for _, workload := range []string{openAt35, openAt70} {
		for _, name := range r.subjects() {
			row := r.row(name, workload)
			if len(row.Rounds) == 0 {
				continue
			}
			offered := func(r load.Report) float64 { return r.OfferedPerSecond }
			t.Row(strings.TrimPrefix(workload, "open loop "), name, thousands(over(row.Rounds, offered).Median),
				over(row.Rounds, p50).show(millis)+" ms", over(row.Rounds, p99).show(millis)+" ms",
				millis(over(row.Rounds, p999).Median)+" ms", millis(over(row.Rounds, worst).Median)+" ms",
				over(row.Rounds, serviceCPU).show(micros)+" µs",
				cpuCell(over(row.Rounds, redisCPU)), micros(over(row.Rounds, generatorCPU).Median)+" µs")
		}
	}
	return t.String()
}

// throughputPlot and costPlot draw both workloads of every subject.
func (r *results) throughputPlot() []byte {
	return r.bars("Requests per second, closed loop", perSecond, thousands)
}

func (r *results) costPlot() []byte {
	return r.bars("CPU per decision, service and Redis together, in µs", func(rep load.Report) float64 {
		return serviceCPU(rep) + redisCPU(rep)
	}, micros)
}

func (r *results) bars(title string, figure func(load.Report) float64, format func(float64) string) []byte {
	b := plot.Bars{Title: title, Format: format}
	for group, workload := range []string{hotKey, manyKeys} {
		for _, name := range r.subjects() {
			s := over(r.row(name, workload).Rounds, figure)
			short := name
			if name == floorName {
				short = "the floor"
			}
			b.Bars = append(b.Bars, plot.Bar{
				Name: short + ", " + workload, Value: s.Median, Low: s.Min, High: s.Max, Group: group,
			})
		}
	}
	return b.SVG()
}

// latencyPlot draws percentiles at 70 % of saturation.
func (r *results) latencyPlot() []byte {
	var lines []plot.Series
	for _, name := range r.subjects() {
		lines = append(lines, percentiles(name, r.row(name, openAt70).Rounds))
	}
	return percentileChart("Latency at 70 % of each one's saturation", lines)
}

// percentiles is a line of the medians of each percentile over the rounds.
func percentiles(name string, rounds measured) plot.Series {
	s := plot.Series{Name: name}
	for _, p := range []struct {
		oneIn float64 // 1 of so many requests took longer
		at    func(load.Latency) float64
	}{
		{2, func(l load.Latency) float64 { return l.P50 }},
		{10, func(l load.Latency) float64 { return l.P90 }},
		{100, func(l load.Latency) float64 { return l.P99 }},
		{1000, func(l load.Latency) float64 { return l.P999 }},
		{10000, func(l load.Latency) float64 { return l.P9999 }},
	} {
		ms := over(rounds, func(r load.Report) float64 { return 1e3 * p.at(r.All.Latency) })
		s.Points = append(s.Points, plot.Point{X: p.oneIn, Y: ms.Median, Low: ms.Min, High: ms.Max})
	}
	return s
}

func percentileChart(title string, lines []plot.Series) []byte {
	names := map[float64]string{2: "p50", 10: "p90", 100: "p99", 1000: "p99.9", 10000: "p99.99"}
	return plot.Chart{
		Title: title, Series: lines,
		X: plot.Axis{
			Label: "percentile", Scale: plot.Log, Ticks: sortedKeys(names),
			Format: func(v float64) string { return names[v] },
		},
		Y: plot.Axis{Label: "ms", Scale: plot.Log},
	}.SVG()
}
