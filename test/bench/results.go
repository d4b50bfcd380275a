package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/honestlimit/ratelimit/internal/load"
)

// resultsFile is where the figures of the last runs are kept, below the checkout.
const resultsFile = ".cache/bench/results.json"

// results are the raw figures of the last run of each section, every round of them. Documents are rendered from them
// and from nothing else.
type results struct {
	// Sections says when and how each of them was measured.
	Sections map[string]origin

	Micro      []microbenchmark
	Saturation []saturationRow
	Outage     []outageRow
	Freeze     []freezeRound
	Growth     []growthRow
	Memory     memoryFigures
	Wire       []wireRow
	Flood      []floodRow
	Mesh       []meshRound
	Knobs      []knobRow
	Soak       *soakFigures
	Profile    *profileFigures
}

// origin is where figures are from.
type origin struct {
	When                 time.Time
	Machine              machine
	Rounds               int
	Duration, Warmup     time.Duration
	Connections, Streams int
}

// measured is one load in each round.
type measured []load.Report

func (m measured) figures(figure func(load.Report) float64) []float64 {
	values := make([]float64, len(m))
	for i, r := range m {
		values[i] = figure(r)
	}
	return values
}

// The figures that tables show.
func perSecond(r load.Report) float64 { return r.All.RequestsPerSecond }
func p50(r load.Report) float64       { return r.All.Latency.P50 }
func p99(r load.Report) float64       { return r.All.Latency.P99 }
func p999(r load.Report) float64      { return r.All.Latency.P999 }
func worst(r load.Report) float64     { return r.All.Latency.Max }

// serviceCPU and redisCPU are in microseconds for each request.
func serviceCPU(r load.Report) float64 { return cpuOf(r, 0) }
func redisCPU(r load.Report) float64   { return cpuOf(r, 1) }

func cpuOf(r load.Report, i int) float64 {
	if i >= len(r.CPU) || r.CPU[i].Gone {
		return 0
	}
	return r.CPU[i].MicrosecondsPerRequest
}

func generatorCPU(r load.Report) float64 {
	if r.Generator == nil {
		return 0
	}
	return r.Generator.MicrosecondsPerRequest
}

// loadResults returns empty results if there are none yet.
func loadResults(root string) (*results, error) {
	r := &results{Sections: map[string]origin{}}
	data, err := os.ReadFile(filepath.Join(root, resultsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w (delete it to begin anew)", resultsFile, err)
	}
	return r, nil
}

func (r *results) save(root string) error {
	path := filepath.Join(root, resultsFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
