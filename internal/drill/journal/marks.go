package journal

import "time"

// Marks are the moments of a failover, as the specification numbers them.
type Marks struct {
	// Fault is T0: the fault was injected.
	Fault Moment `json:"t0_fault_seconds"`
	// SDown is T1: the first Sentinel missed the master.
	SDown Moment `json:"t1_sdown_seconds"`
	// ODown is T2: enough of them did.
	ODown Moment `json:"t2_odown_seconds"`
	// Leader is T3: one of them was elected to act.
	Leader Moment `json:"t3_leader_seconds"`
	// Promoted is T4: a replica was made master.
	Promoted Moment `json:"t4_promoted_seconds"`
	// Switch is when the first +switch-master told the world.
	Switch Moment `json:"switch_seconds"`
	// Decided is T5: the first ordinary decision by the new master.
	Decided Moment `json:"t5_decided_seconds"`
	// Mended is when the drill had undone the fault.
	Mended Moment `json:"mended_seconds"`
	// Healthy is T6: every node is back, follows closely and has the script.
	Healthy Moment `json:"t6_healthy_seconds"`
}

// Mark is one of the Marks with its names, for whoever lists them.
type Mark struct {
	// Short is like T0, Long says what it is.
	Short, Long string
	Moment
}

// List is the marks in the order of their numbers.
func (m Marks) List() []Mark {
	return []Mark{
		{"T0", "fault injected", m.Fault},
		{"T1", "the first misses the master (+sdown)", m.SDown},
		{"T2", "enough of them do (+odown)", m.ODown},
		{"T3", "one is to act (+elected-leader)", m.Leader},
		{"T4", "a replica is promoted", m.Promoted},
		{"SW", "the first announces it (+switch-master)", m.Switch},
		{"T5", "first decision by the new master", m.Decided},
		{"MD", "fault mended", m.Mended},
		{"T6", "all nodes healthy", m.Healthy},
	}
}

// marks finds them in what was seen.
func (j *Journal) marks() Marks {
	m := Marks{Fault: j.act(Injected), Mended: j.lastMending()}
	if j.Plan.Category == Attached {
		m.Fault = m.Fault.Or(j.firstTrouble())
	}
	m.SDown = j.event(m.Fault, EventSDown)
	m.ODown = j.event(m.Fault, EventODown)
	m.Leader = j.event(m.Fault, EventLeader)
	m.Promoted = j.event(m.Fault, EventPromoted)
	m.Switch = j.event(m.Fault, EventSwitch)
	m.Decided = j.decided(m)
	m.Healthy = j.healthy(m)
	return m
}

// event is the first of that name after the fault. Sentinels miss replicas and each other too: of an event that names
// a kind of instance, only that about a master counts.
func (j *Journal) event(fault Moment, name string) Moment {
	if !fault.Happened {
		return Moment{}
	}
	for _, e := range j.Events {
		aboutOther := (name == EventSDown || name == EventODown) && e.Kind != instanceMaster
		if e.At >= fault.At && e.Means() == name && !aboutOther {
			return Seen(e.At)
		}
	}
	return Moment{}
}

// firstTrouble stands for the fault that nobody told the drill of: a master was missed, or the store did not decide.
func (j *Journal) firstTrouble() Moment {
	trouble := j.event(Seen(0), EventSDown)
	for _, a := range j.Answers {
		if a.Degraded() && (!trouble.Happened || a.Due < trouble.At) {
			return Seen(a.Due)
		}
	}
	return trouble
}

func (j *Journal) lastMending() (last Moment) {
	for _, a := range j.Acts {
		if a.Kind == Mended {
			last = Seen(a.At)
		}
	}
	return last
}

// decided is when the first request was admitted that only the new master can have admitted: it was sent after the
// promotion and answered after the service was last seen at the old address. Admissions of steady streams count alone,
// since the service may deny from memory.
func (j *Journal) decided(m Marks) Moment {
	if !m.Promoted.Happened && !m.Switch.Happened {
		return Moment{}
	}
	promoted := m.Promoted.Or(m.Switch)
	left := j.leftOldMaster(m.Fault)
	for _, a := range j.Answers {
		if a.Sent >= promoted.At && a.At > left && j.steady(a) && !a.Degraded() && a.Verdict == Admitted {
			return Seen(a.At)
		}
	}
	return Moment{}
}

func (j *Journal) steady(a Answer) bool {
	return a.Stream < len(j.Streams) && j.Streams[a.Stream].Steady
}

// leftOldMaster is the last moment after the fault at which the service was seen at the address that it had before;
// never, if it stayed there. Without looks at the service it is the fault itself.
func (j *Journal) leftOldMaster(fault Moment) time.Duration {
	old, left := "", fault.At
	for _, s := range j.Service {
		if s.At <= fault.At {
			old = s.Address
			continue
		}
		if s.Address == "" {
			continue
		}
		if s.Address != old {
			return left
		}
		left = s.At
	}
	if old == "" {
		return fault.At
	}
	return max(left, j.End)
}

// Recovered is whether T6 has come yet, for whoever waits for it while the run goes on.
func (j *Journal) Recovered() bool {
	fault := j.act(Injected)
	return j.healthy(Marks{Fault: fault, Mended: j.lastMending(), Promoted: j.event(fault, EventPromoted)}).Happened
}

// healthyRounds is how many looks in a row must find everything well.
const healthyRounds = 3

// healthy is the first of some looks in a row that found everything well, after the last mending and the promotion.
func (j *Journal) healthy(m Marks) Moment {
	from := max(m.Fault.At, m.Mended.At)
	if m.Promoted.Happened {
		from = max(from, m.Promoted.At)
	}
	masters := 0
	first, run := Moment{}, 0
	for _, r := range j.Rounds {
		if r.At <= m.Fault.At {
			masters = max(masters, r.masters())
		}
		if r.At < from || !m.Fault.Happened {
			continue
		}
		if !r.healthy(max(masters, 1)) {
			first, run = Moment{}, 0
			continue
		}
		first = first.Or(Seen(r.At))
		if run++; run == healthyRounds {
			return first
		}
	}
	return Moment{}
}
