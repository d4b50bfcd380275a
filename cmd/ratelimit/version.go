package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/honestlimit/ratelimit/internal/telemetry"
)

type versionCmd struct{}

// Run prints what was built.
func (versionCmd) Run(s *streams) error {
	b := build()
	_, err := fmt.Fprintf(s.out, "ratelimit %s (revision %s, %s %s/%s)\n",
		b.Version, b.Revision, b.GoVersion, runtime.GOOS, runtime.GOARCH)
	return err
}

// build reads what the Go toolchain noted in the binary.
func build() telemetry.Build {
	b := telemetry.Build{Version: "unknown", Revision: "unknown", GoVersion: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = info.Main.Version
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true": // comes after the revision
			b.Revision += "+dirty"
		}
	}
	return b
}
