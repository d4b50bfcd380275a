package limit

// The sliding window counter estimates the requests of the last window as those of the current fixed window plus the
// share of the previous one that still reaches into it, rounded up. Source: the approximation Cloudflare published
// ("How we built rate limiting capable of scaling to millions of domains", 2017). A window starts with the first
// request after two idle windows, so buckets do not all turn over in the same instant.

// advanceWindow turns the windows that have passed since s.At.
func (l Limit) advanceWindow(s State, now int64) State {
	elapsed := now - s.At
	switch {
	case s.At == 0 || elapsed >= 2*l.Period:
		return State{At: now}
	case elapsed >= l.Period:
		return State{At: s.At + l.Period, Rest: s.Level}
	case elapsed < 0:
		s.At = now
	}
	return s
}

// weight is the share of the previous window that still counts, in tokens, rounded up.
func (l Limit) weight(s State, now int64) int64 {
	w, _ := mulDiv(s.Rest, l.Period-(now-s.At), l.Period-1, l.Period)
	return w
}

// waitWindow returns the microseconds until cost fits. While the current window leaves room for it, only the share
// of the previous one must decay; else this window must end and its own share decay first.
func (l Limit) waitWindow(s State, now, cost int64) int64 {
	elapsed := now - s.At
	room := l.Capacity - cost - s.Level
	if room >= 0 {
		if l.weight(s, now) <= room {
			return 0
		}
		share, _ := mulDiv(room, l.Period, 0, s.Rest)
		return l.Period - share - elapsed
	}
	share, _ := mulDiv(l.Capacity-cost, l.Period, 0, s.Level)
	return 2*l.Period - share - elapsed
}
