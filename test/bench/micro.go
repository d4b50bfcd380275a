package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/honestlimit/ratelimit/test/sheet"
)

// microbenchmark is one Go benchmark, by run.
type microbenchmark struct {
	// Name is like pkg/failure Guard_Decide/breaker=open.
	Name                       string
	Nanoseconds, Bytes, Allocs []float64
}

// microPackages hold the hot path.
var microPackages = []string{
	"./pkg/limit", "./pkg/policy", "./pkg/failure", "./pkg/emergency", "./pkg/rls", "./internal/memstore",
	"./internal/redisstore", "./internal/telemetry",
}

// micro runs the benchmarks of single functions.
func (b *bench) micro(ctx context.Context) error {
	b.lab.sayf("microbenchmarks")
	args := append([]string{
		"test", "-run", "^$", "-bench", ".", "-benchmem", "-count", strconv.Itoa(min(b.opts.rounds, 5)),
		"-benchtime", "200ms", "-p", "1",
	}, microPackages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.root
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&out, b.lab.progress)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go test -bench: %w\n%s", err, out.String())
	}
	b.results.Micro = parseMicro(out.String())
	return nil
}

// cores is what go test adds to a benchmark's name: the number of cores.
var cores = regexp.MustCompile(`-\d+$`)

// parseMicro reads the output of go test -bench.
func parseMicro(out string) []microbenchmark {
	var all []microbenchmark
	index := map[string]int{}
	pkg := ""
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) == 2 && fields[0] == "pkg:" {
			pkg = strings.TrimPrefix(fields[1], "github.com/honestlimit/ratelimit/")
		}
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := pkg + " " + cores.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		i, known := index[name]
		if !known {
			i = len(all)
			index[name], all = i, append(all, microbenchmark{Name: name})
		}
		all[i].read(fields[2:])
	}
	return all
}

// read takes pairs of value and unit.
func (m *microbenchmark) read(pairs []string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		v, err := strconv.ParseFloat(pairs[i], 64)
		if err != nil {
			continue
		}
		switch pairs[i+1] {
		case "ns/op":
			m.Nanoseconds = append(m.Nanoseconds, v)
		case "B/op":
			m.Bytes = append(m.Bytes, v)
		case "allocs/op":
			m.Allocs = append(m.Allocs, v)
		}
	}
}

// slowest is the slowest of the benchmarks whose name matches, and the most allocations among them; ok tells whether
// there is one.
func (r *results) slowest(pattern string) (ns, allocs float64, ok bool) {
	name := regexp.MustCompile(pattern)
	for _, m := range r.Micro {
		if name.MatchString(m.Name) {
			ns, allocs, ok = max(ns, median(m.Nanoseconds)), max(allocs, median(m.Allocs)), true
		}
	}
	return ns, allocs, ok
}

func (r *results) microTable() string {
	t := sheet.NewTable("benchmark", "ns", "bytes", "allocations")
	for _, m := range r.Micro {
		t.Row("`"+m.Name+"`", spreadOf(m.Nanoseconds).show(micros), whole(median(m.Bytes)), whole(median(m.Allocs)))
	}
	return t.String()
}
