package main

import (
	"os"
	"runtime"
	"strings"

	"github.com/honestlimit/ratelimit/test/sheet"
)

// machine is where the figures are from.
type machine struct {
	Cores                                   int
	CPU, OS, Kernel, Go, Redis, Built, Arch string
}

// thisMachine asks the system. What it does not tell stays empty.
func thisMachine(binary string) machine {
	return machine{
		Cores: runtime.NumCPU(), Arch: runtime.GOARCH, OS: runtime.GOOS, Go: runtime.Version(),
		CPU: sheet.CPU(), Kernel: fileLine("/proc/sys/kernel/osrelease"),
		Redis: sheet.Redis("redis-server"), Built: sheet.FirstLine(binary, "version"),
	}
}

// String is one sentence for readers.
func (m machine) String() string {
	parts := []string{plural(m.Cores, "core") + " of " + m.CPU, m.OS + " " + m.Kernel + " (" + m.Arch + ")", m.Go}
	if m.Redis != "" {
		parts = append(parts, "Redis "+m.Redis)
	}
	return strings.Join(parts, ", ")
}

func fileLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
