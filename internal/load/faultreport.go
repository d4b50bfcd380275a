package load

import "time"

// FaultReport is what the fault did.
type FaultReport struct {
	// Began and Ended are when, counted from the end of the warm-up. A fault is ended with the run at the latest.
	Began float64 `json:"began_seconds"`
	Ended float64 `json:"ended_seconds"`
	// Phases are before, during and after the fault.
	Phases []Phase `json:"phases"`
	// Recovered tells that an ordinary answer came after the fault: neither an error nor given without the store.
	Recovered bool `json:"recovered"`
	// Recovery is the time from the end of the fault to the first ordinary answer.
	Recovery float64 `json:"recovery_seconds"`
	// Settled is the time from the end of the fault to the last answer that was not ordinary; 0 if none came.
	Settled float64 `json:"settled_seconds"`
	// Connections opened during and after the fault: reconnects.
	ReconnectsDuring int64 `json:"reconnects_during"`
	ReconnectsAfter  int64 `json:"reconnects_after"`
}

// faultReport is nil if the fault did not begin.
func (r *runner) faultReport(tallies [phases]tally, end time.Duration) *FaultReport {
	began, ended := r.fault.begin.Load(), r.fault.end.Load()
	if began == never {
		return nil
	}
	warmup := r.cfg.Warmup
	from, to := time.Duration(began), time.Duration(ended)
	f := &FaultReport{
		Began:            seconds(from - warmup),
		Ended:            seconds(to - warmup),
		ReconnectsDuring: r.dialsDuring - r.dialsBefore,
		ReconnectsAfter:  r.target.opened.Load() - r.dialsDuring,
	}
	lengths := [phases]time.Duration{from - warmup, min(to, end) - from, max(0, end-to)}
	for p := range tallies {
		f.Phases = append(f.Phases, newPhase(phase(p).String(), &tallies[p], max(0, lengths[p])))
	}
	first, last := r.recovery()
	if first > 0 {
		f.Recovered, f.Recovery = true, seconds(first-to)
	}
	if last > 0 {
		f.Settled = seconds(last - to)
	}
	return f
}

// recovery is when the first ordinary answer after the fault came, and the last that was not; 0 if none.
func (r *runner) recovery() (first, last time.Duration) {
	for _, s := range r.shards {
		if s.firstOrdinary > 0 && (first == 0 || s.firstOrdinary < first) {
			first = s.firstOrdinary
		}
		last = max(last, s.lastUnordinary)
	}
	return first, last
}
