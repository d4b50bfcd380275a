//go:build profile

package main

import (
	"flag"
	"os"
	"testing"
)

// TestProfile is the program, for `make pgo` to run under load with -test.cpuprofile: the product has no door through
// which a profile could be taken. What follows the test flags is the program's command line.
func TestProfile(t *testing.T) {
	if code := run(flag.Args(), os.Stdout, os.Stderr); code != exitOK {
		t.Errorf("exit code %d, want %d", code, exitOK)
	}
}
