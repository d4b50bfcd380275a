package main

import (
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// gcPercent lets garbage grow to four times the live heap before it is collected. What a request leaves behind is
	// dead at once and what lives is small, so this saves a sixth of all CPU and costs some ten megabytes; an embedded
	// store of a million buckets costs more.
	gcPercent = 400
	// memoryRatio of a container's memory may be used before the collector works harder than gcPercent asks.
	memoryRatio = 0.9
)

// tuneMemory fits the garbage collector to the service and to the container it runs in. GOGC and GOMEMLIMIT, if set,
// have the last word.
func tuneMemory() error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	_, err := memlimit.Set(memlimit.WithRatio(memoryRatio))
	return err
}
