package limit

// What one bucket admitted can be taken back when another bucket of the same request, which could not be decided in
// the same instant, denied. However many such charges are open at a time, and whatever is charged in between, a refund
// never leaves a bucket with more than it would hold had the charges that are taken back never been made.
//
// For a token bucket that takes some care: while a charge is open, the bucket has room for what it regains, which
// without the charge could have been lost to a full bucket, and so must not be given back as well. A refund therefore
// gives back the cost less what was regained since. It restores what the bucket held when it was charged, and is exact
// for a bucket that was full; else the bucket lacks what it would have regained meanwhile. (Proof: call what the bucket
// lacks against the world without open charges D, and what all refunds together would give back now A. A charge
// raises both by its cost. As time passes D falls by at most what is regained, since only the other world can lose it
// to a full bucket, and A by at least as much, or to 0. A refund lowers both alike. So D >= A >= 0 always.)

// Refund gives cost, which was charged at at, back to s, which Advance brought to now; times are in microseconds since
// the epoch. A sliding window gives back in the window that was charged, as long as that one counts. A bucket without
// state must stay without.
func (l Limit) Refund(s State, now, cost, at int64) State {
	if l.Algorithm == TokenBucket {
		return l.refundTokens(s, now, cost, at)
	}
	switch {
	case at >= s.At:
		s.Level = max(0, s.Level-cost)
	case at >= s.At-l.Period:
		s.Rest = max(0, s.Rest-cost)
	}
	return s
}

func (l Limit) refundTokens(s State, now, cost, at int64) State {
	regained, part := mulDiv(max(0, now-at), l.Refill, 0, l.Period)
	level, rest := s.Level+cost*Micro-regained, s.Rest-part
	if rest < 0 {
		level, rest = level-1, rest+l.Period
	}
	switch {
	case level < s.Level: // it has regained more than it was charged
		return s
	case level >= l.Capacity:
		return State{At: s.At, Level: l.Capacity}
	default:
		return State{At: s.At, Level: level, Rest: rest}
	}
}

// Uncharged returns what the bucket would have said, had it admitted cost without charging it, from what it said when
// it charged. Reset after is exact for a token bucket to two microseconds, and for a sliding window if nothing else
// was counted in it; else it stays as it was.
func (l Limit) Uncharged(cost int64, r Result) Result {
	r.Remaining += cost
	switch {
	case cost == 0 || r.ResetAfter >= Forever:
	case l.Algorithm == TokenBucket:
		r.ResetAfter = max(0, r.ResetAfter-micros(l.untilLevel(State{}, cost*Micro)))
	case r.Remaining == l.Capacity:
		r.ResetAfter = 0
	}
	return r
}
