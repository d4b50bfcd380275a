package preflight

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// size writes bytes as Redis' configuration does, rounded.
func size(bytes int64) string {
	switch {
	case bytes >= 10<<30:
		return fmt.Sprintf("%d GB", bytes>>30)
	case bytes >= 1<<20:
		return fmt.Sprintf("%d MB", bytes>>20)
	case bytes >= 1<<10:
		return fmt.Sprintf("%d kB", bytes>>10)
	default:
		return fmt.Sprintf("%d B", bytes)
	}
}

// short rounds a duration to what people read.
func short(d time.Duration) string {
	abs := d.Abs()
	switch {
	case abs >= 10*time.Second:
		d = d.Round(time.Second)
	case abs >= time.Second:
		d = d.Round(100 * time.Millisecond)
	case abs >= 10*time.Millisecond:
		d = d.Round(time.Millisecond)
	default:
		d = d.Round(10 * time.Microsecond)
	}
	if d >= time.Minute && d%time.Minute == 0 {
		return strings.TrimSuffix(d.String(), "0s")
	}
	return d.String()
}

// bufferLimit is the part of client-output-buffer-limit that is about replicas, in bytes. Redis names that class slave,
// whatever it was configured by.
type bufferLimit struct {
	hard, soft int64
	softFor    time.Duration
}

// parseBufferLimit reads the setting; ok is false if it says nothing of replicas.
func parseBufferLimit(setting string) (l bufferLimit, ok bool) {
	words := strings.Fields(setting)
	for i := 0; i+3 < len(words); i += 4 {
		if words[i] != "slave" && words[i] != "replica" {
			continue
		}
		hard, err1 := strconv.ParseInt(words[i+1], 10, 64)
		soft, err2 := strconv.ParseInt(words[i+2], 10, 64)
		seconds, err3 := strconv.Atoi(words[i+3])
		return bufferLimit{hard: hard, soft: soft, softFor: time.Duration(seconds) * time.Second},
			err1 == nil && err2 == nil && err3 == nil
	}
	return bufferLimit{}, false
}

// percent is part of whole; 0 of nothing.
func percent(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return part * 100 / whole
}
