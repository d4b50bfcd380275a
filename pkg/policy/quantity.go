package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

// units are the spellings of a unit of time, in microseconds. A year has 365 days.
var units = map[string]int64{
	"us": 1, "µs": 1,
	"ms": 1_000,
	"s":  second, "sec": second, "second": second,
	"m": 60 * second, "min": 60 * second, "minute": 60 * second,
	"h": 3600 * second, "hour": 3600 * second,
	"d": day, "day": day,
	"w": 7 * day, "week": 7 * day,
	"y": 365 * day, "year": 365 * day,
}

const (
	second = limit.Micro
	day    = 24 * 3600 * second
	// decimals of a count are microtokens.
	decimals = 6
	// maxDigits of a count keep it in microtokens inside int64; no rate within bounds needs as many.
	maxDigits = 12
)

var (
	errRate     = errors.New("want a number of tokens per time, like 10/s, 0.5/s, 3/min, 1/day or 100/10s")
	errDuration = errors.New("want a whole number with a unit (us, ms, s, min, h, d, w, y), like 250ms, 60s or 7d")
)

// parseRate reads a rate: 10/s, 0.5/s, 3/min, 100/10s. It is exact: no rounding, no floats.
func parseRate(s string) (limit.Rate, error) {
	count, per, found := strings.Cut(s, "/")
	micro, ok := parseCount(count)
	if !found || !ok || per == "" {
		return limit.Rate{}, errRate
	}
	period, ok := units[per]
	if !ok {
		var err error
		if period, err = parseMicroseconds(per); err != nil {
			return limit.Rate{}, errRate
		}
	}
	rate := limit.Rate{Micro: micro, Period: period}
	return rate, bare(rate.Validate())
}

// parseCount reads a number of tokens with up to six decimals, as microtokens.
func parseCount(s string) (int64, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if !digits(whole, maxDigits) || point && !digits(fraction, decimals) {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", decimals-len(fraction)), 10, 64)
	return n, err == nil
}

// parseMicroseconds reads a duration of 1 to limit.MaxPeriod microseconds.
func parseMicroseconds(s string) (int64, error) {
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 || !digits(s[:end], 18) {
		return 0, errDuration
	}
	unit, ok := units[s[end:]]
	n, err := strconv.ParseInt(s[:end], 10, 64)
	if !ok || err != nil {
		return 0, errDuration
	}
	if n < 1 || n > limit.MaxPeriod/unit {
		return 0, fmt.Errorf("want from 1us to %dd", limit.MaxPeriod/day)
	}
	return n * unit, nil
}

// digits tells whether s consists of 1 to most ASCII digits.
func digits(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, "0123456789") == ""
}

// bare takes the package's name off an error that a fault is about to quote.
func bare(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), "limit: "))
}
