package main

import (
	"fmt"
	"math"

	"github.com/honestlimit/ratelimit/internal/load"
	"github.com/honestlimit/ratelimit/test/sheet"
)

// goal is a row of the table of goals.
type goal struct {
	name, want, got string
	// met is the verdict; see verdict.
	met string
}

// verdict compares with a bound: at least, or at most.
func verdict(ok bool) string {
	if ok {
		return "met"
	}
	return "**not met**"
}

// goals holds what was measured against what was aimed at. A goal about something that was not measured says so.
func (r *results) goals() []goal {
	list := r.costGoals()
	list = append(list, r.latencyGoals()...)
	list = append(list, r.microGoals()...)
	return append(list, r.failureGoals()...)
}

func (r *results) costGoals() []goal {
	redis, embedded := r.row(redisName, hotKey), r.row(embeddedName, hotKey)
	var list []goal
	if p := r.row(r.peerName(), hotKey); len(p.Rounds) > 0 {
		list = append(list,
			r.ratioGoal("through Redis: requests/s, times those of "+p.Subject, atLeast(3), redis, p, perSecond),
			r.ratioGoal("through Redis: CPU in Redis, of "+p.Subject+"'s", atMost(0.4), redis, p, redisCPU),
			h2loadGoal("the same requests/s by h2load", atLeast(3), redis, p))
	}
	floor := r.row(floorName, hotKey)
	return append(list,
		r.ratioGoal("through Redis: requests/s, of the floor's", atLeast(0.85), redis, floor, perSecond),
		h2loadGoal("the same by h2load", atLeast(0.85), redis, floor),
		r.ratioGoal("through Redis: CPU in the service, of the floor's", stretch(1.15, 1), redis, floor, serviceCPU),
		r.ratioGoal("embedded store: CPU in the service, of the floor's", stretch(0.9, 0.75), embedded, floor, serviceCPU),
		allocationGoal(redis, floor),
	)
}

// bound is what a figure is compared with. Better is a second, harder bound, or 0.
type bound struct {
	value, better float64
	least         bool
}

func atLeast(v float64) bound         { return bound{value: v, least: true} }
func atMost(v float64) bound          { return bound{value: v} }
func stretch(v, better float64) bound { return bound{value: v, better: better} }

func (b bound) String() string {
	switch {
	case b.least:
		return "≥ " + digits(b.value, 3)
	case b.better > 0:
		return fmt.Sprintf("≤ %s, stretch %s", digits(b.value, 3), digits(b.better, 3))
	default:
		return "≤ " + digits(b.value, 3)
	}
}

func (b bound) verdict(v float64) string {
	switch {
	case b.least:
		return verdict(v >= b.value)
	case b.better > 0 && v <= b.better:
		return "met, stretch too"
	default:
		return verdict(v <= b.value)
	}
}

// ratioGoal is about a figure of a divided by the one of b, round by round.
func (r *results) ratioGoal(name string, want bound, a, b saturationRow, figure func(load.Report) float64) goal {
	s := spreadOf(ratios(a.Rounds.figures(figure), b.Rounds.figures(figure)))
	if s.Max == 0 {
		return unmeasured(name, want.String())
	}
	got := s.show(times)
	others := spreadOf(ratios(r.row(a.Subject, manyKeys).Rounds.figures(figure),
		r.row(b.Subject, manyKeys).Rounds.figures(figure)))
	if others.Max > 0 {
		got += "; over " + manyKeys + ": " + times(others.Median)
	}
	return goal{name, want.String(), got, want.verdict(s.Median)}
}

func h2loadGoal(name string, want bound, a, b saturationRow) goal {
	s := spreadOf(ratios(a.H2load, b.H2load))
	if s.Max == 0 {
		return unmeasured(name, want.String())
	}
	return goal{name, want.String(), s.show(times), want.verdict(s.Median)}
}

func allocationGoal(redis, floor saturationRow) goal {
	const name, want = "allocations a request, gRPC included", "no more than the floor's"
	if len(redis.Allocations) == 0 || len(floor.Allocations) == 0 {
		return unmeasured(name, want)
	}
	ours, theirs := median(redis.Allocations), median(floor.Allocations)
	// Goroutines of the runtime and the scrape itself allocate a little.
	return goal{name, want, times(ours) + " against " + times(theirs), verdict(math.Round(ours) <= math.Round(theirs))}
}

func unmeasured(name, want string) goal { return goal{name, want, "-", "not measured"} }

func (r *results) latencyGoals() []goal {
	const p50Name, p99Name = "p50 at 70 % of saturation, through Redis", "p99 at 70 % of saturation, through Redis"
	row := r.row(redisName, openAt70)
	if len(row.Rounds) == 0 {
		return []goal{unmeasured(p50Name, "≤ 0.4 ms"), unmeasured(p99Name, "≤ 3 ms")}
	}
	middle, high := over(row.Rounds, p50), over(row.Rounds, p99)
	return []goal{
		{p50Name, "≤ 0.4 ms", middle.show(millis) + " ms", verdict(middle.Median <= 0.4e-3)},
		{p99Name, "≤ 3 ms", high.show(millis) + " ms", verdict(high.Median <= 3e-3)},
	}
}

// microGoals are about single functions.
func (r *results) microGoals() []goal {
	var list []goal
	for _, g := range []struct {
		name, pattern string
		ns, allocs    float64
	}{
		{"breaker open: `Guard.Decide`, all cores", "^pkg/failure Guard_Decide/breaker=open", 500, 0},
		{"policy match, 10 to 10,000 policies", "^pkg/policy Domain_Match/", 300, 0},
		{"from wire to wire, and two that gRPC wants", "^pkg/rls Server_Wire$", 0, 3 + 2},
	} {
		want := fmt.Sprintf("%s allocations", whole(g.allocs))
		if g.ns > 0 {
			want = fmt.Sprintf("< %s ns, %s", whole(g.ns), want)
		} else {
			want = "≤ " + want
		}
		ns, allocs, ok := r.slowest(g.pattern)
		if !ok {
			list = append(list, unmeasured(g.name, want))
			continue
		}
		met := allocs <= g.allocs && (g.ns == 0 || ns < g.ns)
		list = append(list, goal{g.name, want, micros(ns) + " ns, " + whole(allocs), verdict(met)})
	}
	return list
}

func (r *results) failureGoals() []goal {
	list := []goal{}
	const lost, dials, normal = "100 ms freeze at 10 k/s: requests lost, times the unavoidable",
		"100 ms freeze: connections opened to Redis", "100 ms freeze: normal again after the thaw"
	if len(r.Freeze) == 0 {
		list = append(list, unmeasured(lost, "≤ 1.1"), unmeasured(dials, "no storm"), unmeasured(normal, "< 50 ms"))
	} else {
		excess, after := over(r.Freeze, freezeRound.excess), over(r.Freeze, freezeRound.normal)
		opened := over(r.Freeze, func(f freezeRound) float64 { return f.Dials })
		list = append(list,
			goal{lost, "≤ 1.1", excess.show(times), verdict(excess.Median <= 1.1)},
			goal{dials, "no storm", "at most " + whole(opened.Max), verdict(opened.Max <= 4)},
			goal{normal, "< 50 ms", after.show(span), verdict(after.Median < 50e-3)})
	}
	const bytes, want = "memory of one bucket in Redis, with key and lifetime", "≤ 170 bytes"
	m, ok := r.Memory.Redis[redisName]
	if !ok {
		return append(list, unmeasured(bytes, want))
	}
	return append(list, goal{bytes, want, whole(m.Total) + " bytes", verdict(m.Total <= 170)})
}

func (r *results) goalTable() string {
	t := sheet.NewTable("figure", "goal", "measured", "")
	for _, g := range r.goals() {
		t.Row(g.name, g.want, g.got, g.met)
	}
	return t.String()
}
