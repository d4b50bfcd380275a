package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// machine is where figures are from.
type machine struct {
	Cores          int
	CPU, Go, Redis string
}

// thisMachine asks the system. What it does not tell stays empty.
func thisMachine(server string) machine {
	return machine{Cores: runtime.NumCPU(), CPU: cpuModel(), Go: runtime.Version(), Redis: redisVersion(server)}
}

// String is for readers.
func (m machine) String() string {
	return fmt.Sprintf("%d cores of %s, %s, Redis %s", m.Cores, m.CPU, m.Go, m.Redis)
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

// redisVersion reads "Redis server v=7.0.15 sha=...".
func redisVersion(server string) string {
	out, err := exec.Command(server, "--version").Output()
	if err != nil {
		return "of unknown version"
	}
	for field := range strings.FieldsSeq(string(out)) {
		if v, ok := strings.CutPrefix(field, "v="); ok {
			return v
		}
	}
	return "of unknown version"
}
