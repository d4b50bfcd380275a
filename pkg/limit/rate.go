package limit

import (
	"errors"
	"fmt"
)

// Rate is a number of microtokens per period. It is a fraction, so that "1 a year" and "3 a minute" are exact.
// The zero value is invalid.
type Rate struct {
	// Micro is the number of microtokens, at least 1.
	Micro int64
	// Period is the time they take, in microseconds, from 1 to MaxPeriod.
	Period int64
}

// slowest is the lowest rate, one token a year: it keeps "time until it fits" a time somebody could live to see.
var slowest = Rate{Micro: Micro, Period: MaxPeriod}

// Validate reports a rate outside one token in 366 days to MaxRate tokens a second.
func (r Rate) Validate() error {
	if r.Micro < 1 || r.Period < 1 {
		return errors.New("limit: rate must be > 0")
	}
	r = r.Reduced()
	if r.Period > MaxPeriod {
		return fmt.Errorf("limit: rate has a period of %d microseconds, at most %d", r.Period, int64(MaxPeriod))
	}
	if most, _ := mulDiv(MaxRate, r.Period, 0, 1); r.Micro > most {
		return fmt.Errorf("limit: rate must be at most %d tokens a second", MaxRate)
	}
	// r >= slowest, multiplied out: Micro/Period >= slowest.Micro/slowest.Period.
	if longest, _ := mulDiv(r.Micro, slowest.Period, 0, slowest.Micro); r.Period > longest {
		return errors.New("limit: rate must be at least 1 token a year")
	}
	return nil
}

// Reduced returns the same rate in lowest terms: 60 a minute is 1 a second. It keeps the products of the algorithms
// small.
func (r Rate) Reduced() Rate {
	g := gcd(r.Micro, r.Period)
	if g <= 1 {
		return r
	}
	return Rate{Micro: r.Micro / g, Period: r.Period / g}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
