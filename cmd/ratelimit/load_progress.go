package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/honestlimit/ratelimit/internal/load"
)

// eraseLine goes back to the start of a terminal's line and empties it.
const eraseLine = "\r\x1b[K"

// progressLine rewrites one line of a terminal.
type progressLine struct {
	out io.Writer // io.Discard if it is no terminal
}

func newProgressLine(w io.Writer) *progressLine {
	f, ok := w.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) {
		return &progressLine{out: io.Discard}
	}
	return &progressLine{out: f}
}

func (l *progressLine) show(p load.Progress) {
	fmt.Fprint(l.out, eraseLine+progressText(p))
}

func (l *progressLine) clear() { fmt.Fprint(l.out, eraseLine) }

func progressText(p load.Progress) string {
	elapsed := fmt.Sprintf("%.1f", p.Elapsed.Seconds())
	if p.Total > 0 {
		elapsed += fmt.Sprintf("/%.1f", p.Total.Seconds())
	}
	mark := ""
	switch {
	case p.WarmingUp:
		mark = "  warming up"
	case p.FaultActive:
		mark = "  FAULT"
	}
	return fmt.Sprintf("%s s  %.0f/s  %d answered  %d over limit  %d errors  worst %v%s", elapsed, p.PerSecond, p.Answered,
		p.OverLimit, p.Errors, p.Worst.Round(10*time.Microsecond), mark)
}
