package main

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/honestlimit/ratelimit/test/sheet"
)

// machine is where figures are from.
type machine struct {
	Cores          int
	CPU, Go, Redis string
}

// thisMachine asks the system. What it does not tell stays empty.
func thisMachine(server string) machine {
	return machine{
		Cores: runtime.NumCPU(), CPU: sheet.CPU(), Go: runtime.Version(),
		Redis: cmp.Or(sheet.Redis(server), "of unknown version"),
	}
}

// String is for readers.
func (m machine) String() string {
	return fmt.Sprintf("%d cores of %s, %s, Redis %s", m.Cores, m.CPU, m.Go, m.Redis)
}
