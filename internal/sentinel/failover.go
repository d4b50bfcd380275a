package sentinel

import "time"

const (
	// failoverLeftovers is how long after its end a failover's events may still come from slower Sentinels.
	failoverLeftovers = 10 * time.Second
	// failoverForgotten is how long a failover that nobody tells of any more is believed to go on: longer than Sentinel's
	// own pause of twice failover-timeout before it tries again.
	failoverForgotten = 10 * time.Minute
)

// failover measures how long the Sentinels take to replace a master. Several of them tell of the same one.
type failover struct {
	master string        // whose it is
	began  time.Time     // the first +odown or +try-failover; zero if there is none
	heard  time.Time     // the last event of it
	took   time.Duration // until the first +switch-master, of the last failover that got so far
	ended  time.Time     // when that was
}

// note tells of an event at now and returns the time since the failover that it belongs to began.
func (f *failover) note(e Event, now time.Time) time.Duration {
	begins := e.Kind == "master" && (e.Name == agreedEvent || e.Name == tryEvent)
	if begins && (e.Master != f.master || f.isOver(now)) {
		f.master, f.began = e.Master, now
	}
	if f.began.IsZero() || e.Master == "" || e.Master != f.master {
		return 0
	}
	f.heard = now
	elapsed := now.Sub(f.began)
	switch {
	case e.Name == upEvent:
		f.began = time.Time{}
	case e.Name == switchEvent && f.ended.Before(f.began):
		f.took, f.ended = elapsed, now
	}
	return elapsed
}

// isOver tells whether another failover of the same master may begin.
func (f *failover) isOver(now time.Time) bool {
	if f.began.IsZero() || now.Sub(f.heard) > failoverForgotten {
		return true
	}
	return !f.ended.Before(f.began) && now.Sub(f.ended) > failoverLeftovers
}
