package main

import (
	"os"
	"path/filepath"

	"github.com/honestlimit/ratelimit/test/process"
)

// scenario is one row of the table.
type scenario struct {
	name string
	// floor measures the constant answer instead of the service.
	floor bool
	// redis is what is done to Redis before the load; nil for a service on the embedded store.
	redis func(*process.Process) error
	// flags are added to the service's.
	flags []string
}

func leaveAlone(*process.Process) error { return nil }

var scenarios = []scenario{
	{name: "constant answer, no limiting", floor: true},
	{name: "embedded store"},
	{name: "Redis healthy", redis: leaveAlone},
	{name: "Redis frozen", redis: (*process.Process).Freeze},
	{
		name: "Redis frozen, breaker held closed", redis: (*process.Process).Freeze,
		flags: []string{"--breaker-failures", "1000000"},
	},
	{name: "Redis dead", redis: (*process.Process).Kill},
}

// limits that no load generator reaches, so that every answer of a store that works is OK.
const policies = `domain: bench
policies:
  - endpoint_id: bench
    descriptor: [{key: endpoint_id, value: bench}, {key: tenant}]
    token_bucket: {rate: 1000000/s, burst: 1000000000}
    fail_mode: fail_closed
`

func writePolicies(dir string) (string, error) {
	path := filepath.Join(dir, "bench.yaml")
	return path, os.WriteFile(path, []byte(policies), 0o600)
}
