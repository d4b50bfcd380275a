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

// growthRow is one subject at one size.
type growthRow struct {
	// Dimension is what grows, Store the subject's name.
	Dimension, Store string
	Size             int
	Rounds, Floor    measured
}

// Dimensions of growth.
const (
	byKeys     = "distinct keys"
	byCharges  = "policies a request"
	byPolicies = "policies in the domain"
)

// growthCase is one size to measure.
type growthCase struct {
	dimension string
	size      int
	kind      kind
	// filled is how many buckets there are before the load.
	filled int
	load   load.Config
}

// growthCases of one dimension are measured side by side.
func (b *bench) growthCases() [][]growthCase {
	var keys, charges, policies []growthCase
	for _, k := range []kind{redisKind, embeddedKind} {
		sizes := []int{1_000, 100_000, b.opts.keys}
		if !k.redis {
			sizes[2] = min(sizes[2], 1_000_000) // as many as the embedded store keeps
		}
		for _, n := range sizes {
			keys = append(keys, growthCase{byKeys, n, k, n, keyed(n)})
		}
		for _, n := range []int{1, 2, 5} {
			charges = append(charges, growthCase{byCharges, n, k, 0, charging(n)})
		}
		for _, n := range []int{10, 100, 1_000, 10_000} {
			k.policies = manyPolicies(n)
			policies = append(policies, growthCase{byPolicies, n, k, 0, load.Config{
				Domain: domain, Keys: n, Descriptors: endpoint("e"+load.KeyPlaceholder, "acme"),
			}})
		}
	}
	return [][]growthCase{keys, charges, policies}
}

// charging asks about n buckets of a tenant at once, all or nothing: its own and n-1 that differ in the name.
func charging(n int) load.Config {
	cfg := many()
	for i := 1; i < n; i++ {
		cfg.Descriptors = append(cfg.Descriptors, usual(fmt.Sprintf("u%d-%s", i, load.KeyPlaceholder))...)
	}
	return cfg
}

// manyPolicies are n endpoints, beside the usual one.
func manyPolicies(n int) string {
	var text strings.Builder
	text.WriteString(usualPolicies)
	for i := range n {
		fmt.Fprintf(&text, `  - endpoint_id: e%d
    descriptor: [{key: endpoint_id, value: e%d}, {key: tenant}]
    token_bucket: {rate: 1/h, burst: 1000000000}
    fail_mode: fail_closed
`, i, i)
	}
	return text.String()
}

// growth measures what a decision costs as things get more.
func (b *bench) growth(ctx context.Context) error {
	b.results.Growth = nil
	for _, cases := range b.growthCases() {
		if err := b.growthOf(ctx, cases); err != nil {
			return err
		}
	}
	return nil
}

// growthOf measures the cases of one dimension, and the floor, in each round. They run on one and the same process
// each: filling millions of buckets takes longer than the load.
func (b *bench) growthOf(ctx context.Context, cases []growthCase) (err error) {
	kinds := []kind{floorKind}
	for _, c := range cases {
		kinds = append(kinds, c.kind)
	}
	all, err := b.lab.startAll(ctx, kinds...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.stop()) }()
	rows := make([]growthRow, len(cases))
	for i, c := range cases {
		rows[i] = growthRow{Dimension: c.dimension, Store: c.kind.name, Size: c.size}
		if c.filled > 0 {
			b.lab.sayf("growth: %s, %d %s: filling", c.kind.name, c.size, c.dimension)
			if err := b.lab.fill(ctx, all[i+1], c.filled); err != nil {
				return err
			}
		}
	}
	for round := range b.opts.rounds {
		b.lab.sayf("growth by %s, round %d of %d", cases[0].dimension, round+1, b.opts.rounds)
		floor, err := b.lab.run(ctx, all[0], many(), b.opts.duration/2)
		if err != nil {
			return err
		}
		for i, c := range cases {
			report, err := b.lab.run(ctx, all[i+1], c.load, b.opts.duration/2)
			if err != nil {
				return err
			}
			rows[i].Rounds, rows[i].Floor = append(rows[i].Rounds, report), append(rows[i].Floor, floor)
		}
	}
	b.results.Growth = append(b.results.Growth, rows...)
	return nil
}

// againstFloor is the service's CPU per request divided by the floor's of the same round.
func (g growthRow) againstFloor() spread {
	return spreadOf(ratios(g.Rounds.figures(serviceCPU), g.Floor.figures(serviceCPU)))
}

func (r *results) growthTable() string {
	t := sheet.NewTable("what grows", "store", "", "CPU in the service, of the floor's", "CPU in the service",
		"CPU in Redis", "requests/s", "p99")
	for _, g := range r.Growth {
		t.Row(g.Dimension, g.Store, plot.Short(float64(g.Size)), g.againstFloor().show(times),
			over(g.Rounds, serviceCPU).show(micros)+" µs", cpuCell(over(g.Rounds, redisCPU)),
			thousands(over(g.Rounds, perSecond).Median), millis(over(g.Rounds, p99).Median)+" ms")
	}
	return t.String()
}

// growthPlot draws one dimension: the service's CPU, and that of Redis, for each decision.
func (r *results) growthPlot(dimension string) []byte {
	lines := map[string]*plot.Series{}
	var order []string
	add := func(name string, size int, s spread) {
		if s.Max == 0 {
			return
		}
		if lines[name] == nil {
			lines[name] = &plot.Series{Name: name}
			order = append(order, name)
		}
		lines[name].Points = append(lines[name].Points, plot.Point{X: float64(size), Y: s.Median, Low: s.Min, High: s.Max})
	}
	for _, g := range r.Growth {
		if g.Dimension == dimension {
			add(g.Store, g.Size, over(g.Rounds, serviceCPU))
			add("in Redis itself", g.Size, over(g.Rounds, redisCPU))
		}
	}
	scale := plot.Log
	if dimension == byCharges {
		scale = plot.Linear
	}
	c := plot.Chart{
		Title: "CPU per decision by " + dimension,
		X:     plot.Axis{Label: dimension, Scale: scale},
		Y:     plot.Axis{Label: "µs", Scale: plot.Linear},
	}
	for _, name := range order {
		c.Series = append(c.Series, *lines[name])
	}
	return c.SVG()
}
