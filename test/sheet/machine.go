package sheet

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
)

// CPU is the model of this machine's processor.
func CPU() string {
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

// FirstLine is what a program prints first, empty if it fails.
func FirstLine(program string, args ...string) string {
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}

// Redis is the version of a redis-server, empty if it does not tell. It reads "Redis server v=7.0.15 sha=...".
func Redis(server string) string {
	for field := range strings.FieldsSeq(FirstLine(server, "--version")) {
		if v, ok := strings.CutPrefix(field, "v="); ok {
			return v
		}
	}
	return ""
}
