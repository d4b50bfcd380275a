package telemetry

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// Format is how log lines are written.
type Format uint8

// The formats.
const (
	// FormatAuto is console on a terminal and JSON elsewhere.
	FormatAuto Format = 1 + iota
	// FormatJSON is one JSON object a line.
	FormatJSON
	// FormatConsole is for people.
	FormatConsole
)

// String names the format as the command line does.
func (f Format) String() string {
	switch f {
	case FormatAuto:
		return "auto"
	case FormatJSON:
		return "json"
	case FormatConsole:
		return "console"
	default:
		return fmt.Sprintf("format(%d)", uint8(f))
	}
}

// ParseFormat is the inverse of Format.String.
func ParseFormat(s string) (Format, error) {
	for _, f := range [...]Format{FormatAuto, FormatJSON, FormatConsole} {
		if f.String() == s {
			return f, nil
		}
	}
	return 0, fmt.Errorf("telemetry: log format is %q, must be auto, json or console", s)
}

// NewLogger returns a logger that writes lines of at least level to w, with the time in UTC to the millisecond.
func NewLogger(w io.Writer, format Format, level zerolog.Level) zerolog.Logger {
	if format == FormatConsole || format == FormatAuto && isTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !isTerminal(w)}
	}
	return zerolog.New(w).Level(level).Hook(zerolog.HookFunc(stamp))
}

// stamp gives each line its time. zerolog's own timestamp takes its format from a global.
func stamp(e *zerolog.Event, _ zerolog.Level, _ string) {
	e.Str(zerolog.TimestampFieldName, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
