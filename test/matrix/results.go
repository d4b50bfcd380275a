package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// resultsFile is where the figures of the last run of each row are kept, below the checkout.
const resultsFile = ".cache/matrix/results.json"

// results are the raw figures. The document is rendered from them and from nothing else.
type results struct {
	// Rows are by topology/fault.
	Rows map[string]row
}

// row is one fault on one topology.
type row struct {
	Origin origin
	Runs   []figures
}

// origin is where and how a row was measured.
type origin struct {
	When      time.Time
	Machine   machine
	Rate      float64
	Budget    time.Duration
	DownAfter time.Duration
}

// failed is whether any run has missed an expectation.
func (r row) failed() bool {
	return slices.ContainsFunc(r.Runs, func(f figures) bool { return len(f.Failures) > 0 })
}

// miss is an error if any run has missed an expectation.
func (r row) miss(name string) error {
	var all []string
	for _, f := range r.Runs {
		all = append(all, f.Failures...)
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", name, strings.Join(all, "; "))
}

func loadResults(root string) (*results, error) {
	r := &results{Rows: map[string]row{}}
	text, err := os.ReadFile(filepath.Join(root, resultsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	return r, json.Unmarshal(text, r)
}

func (r *results) save(root string) error {
	path := filepath.Join(root, resultsFile)
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
