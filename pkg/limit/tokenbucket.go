package limit

// advanceTokens adds what the time since s.At has regained, and keeps the fraction of a microtoken in Rest, so that
// a bucket charged every microsecond refills as fast as one that is left alone.
func (l Limit) advanceTokens(s State, now int64) State {
	if s.At == 0 {
		return State{At: now, Level: l.Capacity}
	}
	if s.Rest >= l.Period { // the rate was changed since
		s.Rest = 0
	}
	elapsed := max(0, now-s.At)
	gain, rest := mulDiv(elapsed, l.Refill, s.Rest, l.Period)
	if gain >= l.Capacity-s.Level {
		return State{At: now, Level: l.Capacity}
	}
	return State{At: now, Level: s.Level + gain, Rest: rest}
}

// untilLevel returns the microseconds until s holds level microtokens: the smallest t for which
// t*Refill + Rest >= missing*Period.
func (l Limit) untilLevel(s State, level int64) int64 {
	missing := level - s.Level
	if missing <= 0 {
		return 0
	}
	t, _ := mulDiv(missing-1, l.Period, l.Period-s.Rest+l.Refill-1, l.Refill)
	return t
}
