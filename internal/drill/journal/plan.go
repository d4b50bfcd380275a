package journal

import "time"

// Plan is what a drill means to do, and what must come of it.
type Plan struct {
	// Category and Variant name the fault.
	Category Category
	Variant  string
	// Title says in a sentence what is done.
	Title string
	// Topology says in words what it is done to.
	Topology string
	// Master is the name of the node that is the master before the fault; empty if it is not known.
	Master string
	// Expect is what must become of the master's role.
	Expect Expectation
	// Calm means that the fault must not be felt: decisions stay ordinary throughout.
	Calm bool
	// Blackout means that the fault leaves the service without a master until it is mended; T5 counts from there.
	Blackout bool
	// Emptied means that the store forgets everything until the fault is mended: every bucket may start full again.
	Emptied bool

	// Budget is the service's time for a decision, Margin how much later an answer may reach the caller; what the
	// machine cost the drill itself (Journal.Stalls) is added.
	Budget, Margin time.Duration
	// MaxInFlight is the service's own bound on decisions in flight.
	MaxInFlight int
	// PromoteWithin bounds T4-T0, DecideWithin T5 after the switch, SettleWithin T6 after the last mending.
	PromoteWithin, DecideWithin, SettleWithin time.Duration
	// Loss is how much of the time before the fault a replica may not have received.
	Loss time.Duration
	// SplitBrain is how long after the fault the old master may go on admitting what is then lost:
	// min-replicas-max-lag and the period at which Redis checks it. 0 if nobody reaches it any more.
	SplitBrain time.Duration
}

// Expectation is what must become of the master's role.
type Expectation uint8

// The expectations. The zero value expects nothing: the fault is not the drill's own.
const (
	// Failover means that another node becomes master.
	Failover Expectation = 1 + iota
	// NoFailover means that none does.
	NoFailover
)

// String names the expectation.
func (e Expectation) String() string {
	switch e {
	case Failover:
		return "failover"
	case NoFailover:
		return "no failover"
	default:
		return "anything"
	}
}
