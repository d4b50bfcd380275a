package main

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strings"
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
		CPU: cpuModel(), Kernel: fileLine("/proc/sys/kernel/osrelease"),
		Redis: redisVersion(), Built: firstLine(binary, "version"),
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

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "an unknown processor"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "model name"); ok {
			return strings.TrimLeft(name, "\t :")
		}
	}
	return "an unknown processor"
}

func fileLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// redisVersion reads "Redis server v=7.0.15 sha=...".
func redisVersion() string {
	for field := range strings.FieldsSeq(firstLine("redis-server", "--version")) {
		if v, ok := strings.CutPrefix(field, "v="); ok {
			return v
		}
	}
	return ""
}

func firstLine(program string, args ...string) string {
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}
