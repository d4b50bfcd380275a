package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// documents are written below the checkout.
const (
	performancePage = "docs/performance.md"
	plotDirectory   = "docs/performance"
	readmePage      = "README.md"
)

// render writes every table and plot from the results.
func (r *results) render(root string) error {
	return errors.Join(
		rewrite(filepath.Join(root, performancePage), r.blocks()),
		rewrite(filepath.Join(root, readmePage), map[string]string{"bench": r.readme()}),
		r.writePlots(filepath.Join(root, plotDirectory)),
	)
}

// rewrite replaces the blocks of a page. A page that lacks one is an error: its figures would go stale unseen.
func rewrite(path string, blocks map[string]string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text := string(data)
	for _, name := range sortedKeys(blocks) {
		if text, err = replaceBlock(text, name, blocks[name]); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// replaceBlock puts body between <!-- name --> and <!-- end of name -->.
func replaceBlock(text, name, body string) (string, error) {
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	head, rest, found := strings.Cut(text, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", fmt.Errorf("there is no block between %q and %q", strings.TrimSpace(begin), end)
	}
	return head + begin + strings.TrimRight(body, "\n") + "\n" + end + tail, nil
}

// block is what stands between two comments of docs/performance.md, and the section that it is from.
type block struct {
	section string
	text    func() string
}

// blocks are by name. A section that was not measured yet says so.
func (r *results) blocks() map[string]string {
	texts := map[string]string{}
	for name, b := range map[string]block{
		"goals":      {"saturation", r.goalTable},
		"saturation": {"saturation", r.saturationText},
		"open":       {"saturation", r.openText},
		"outage":     {"outage", r.outageText},
		"freeze":     {"freeze", r.freezeTable},
		"growth":     {"growth", r.growthText},
		"memory":     {"memory", r.memoryTable},
		"wire":       {"wire", r.wireTable},
		"flood":      {"flood", r.floodTable},
		"mesh":       {"mesh", r.meshTable},
		"knobs":      {"knobs", r.knobTable},
		"micro":      {"micro", r.microTable},
		"soak":       {"soak", r.soakText},
		"pgo":        {"pgo", r.profileText},
	} {
		o, ok := r.Sections[b.section]
		if !ok {
			texts[name] = "Not measured yet.\n"
			continue
		}
		texts[name] = "*" + o.String() + "*\n\n" + b.text()
	}
	return texts
}

func (r *results) saturationText() string {
	return "### " + upperFirst(hotKey) + "\n\n" + r.saturationTable(hotKey) + "\n### " + manyKeys + "\n\n" +
		r.saturationTable(manyKeys) + r.generator() + "\n" + image("throughput", "Requests per second") +
		image("cost", "CPU per decision")
}

func (r *results) openText() string {
	return r.openTable() + "\n" + image("latency", "Latency at 70 % of saturation")
}

func (r *results) outageText() string {
	return r.outageTable() + "\n" + image("outage", "Latency while Redis is in trouble")
}

func (r *results) growthText() string {
	return image("growth-keys", "Cost by number of keys") + image("growth-charges", "Cost by policies a request") +
		image("growth-policies", "Cost by policies in the domain") + "\n" + r.growthTable()
}

// String says where and how figures were measured.
func (o origin) String() string {
	return fmt.Sprintf("%s; %s of %s, median [min-max]; %s.", o.Machine, plural(o.Rounds, "round"), o.Duration,
		o.When.UTC().Format("2006-01-02"))
}

// generator says what the load generator took of the machine.
func (r *results) generator() string {
	row := r.row(redisName, hotKey)
	if len(row.Rounds) == 0 {
		return ""
	}
	return fmt.Sprintf("\nThe load generator, on the same cores, takes %s µs a request.\n",
		over(row.Rounds, generatorCPU).show(micros))
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func image(name, about string) string { return fmt.Sprintf("![%s](performance/%s.svg)\n", about, name) }

// writePlots draws what was measured.
func (r *results) writePlots(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	plots := map[string]func() []byte{}
	if len(r.Saturation) > 0 {
		plots["throughput"], plots["cost"], plots["latency"] = r.throughputPlot, r.costPlot, r.latencyPlot
	}
	if len(r.Outage) > 0 {
		plots["outage"] = r.outagePlot
	}
	if len(r.Growth) > 0 {
		plots["growth-keys"] = func() []byte { return r.growthPlot(byKeys) }
		plots["growth-charges"] = func() []byte { return r.growthPlot(byCharges) }
		plots["growth-policies"] = func() []byte { return r.growthPlot(byPolicies) }
	}
	if r.Soak != nil {
		plots["soak"] = r.soakPlot
	}
	for _, name := range sortedKeys(plots) {
		if err := os.WriteFile(filepath.Join(dir, name+".svg"), plots[name](), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// readme is the short form.
func (r *results) readme() string {
	o, ok := r.Sections["outage"]
	if !ok {
		return "Not measured yet: `make bench`.\n"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Load generator, service and Redis on the same %s of %s, a closed loop of %d requests over 1,000 "+
		"tenants,\nall of them `fail_closed`; medians of %s:\n\n%s\n", plural(o.Machine.Cores, "core"), o.Machine.CPU,
		o.Connections*o.Streams, plural(o.Rounds, "round"), r.outageTable())
	for _, fact := range []string{r.costFact(), r.freezeFact()} {
		if fact != "" {
			text.WriteString("- " + fact + "\n")
		}
	}
	text.WriteString("- Method, goals, plots, growth, memory, and what did not pay: " +
		"[docs/performance.md](docs/performance.md).\n  `make bench` measures it all again and writes these figures.\n")
	return text.String()
}

func (r *results) costFact() string {
	row := r.row(redisName, hotKey)
	if len(row.Rounds) == 0 {
		return ""
	}
	fact := fmt.Sprintf("A decision through Redis costs the service %s times the CPU of a gRPC server that answers a "+
		"constant,\n  with the embedded store %s times", times(r.againstFloor(row, serviceCPU).Median),
		times(r.againstFloor(r.row(embeddedName, hotKey), serviceCPU).Median))
	peer := r.row(r.peerName(), hotKey)
	if len(peer.Rounds) == 0 {
		return fact + "."
	}
	return fact + fmt.Sprintf("; %s %s times.", peer.Subject, times(r.againstFloor(peer, serviceCPU).Median))
}

func (r *results) freezeFact() string {
	if len(r.Freeze) == 0 {
		return ""
	}
	return fmt.Sprintf("A freeze of Redis of 100 ms at 10,000 requests a second costs %s times the requests that nobody "+
		"could have saved,\n  and is over %s after the thaw.", times(over(r.Freeze, freezeRound.excess).Median),
		span(over(r.Freeze, freezeRound.normal).Median))
}
