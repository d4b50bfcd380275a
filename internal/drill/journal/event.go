package journal

import "time"

// Names of Sentinel's events that a drill reads.
const (
	EventSDown     = "+sdown"
	EventODown     = "+odown"
	EventTry       = "+try-failover"
	EventLeader    = "+elected-leader"
	EventSelected  = "+selected-slave"
	EventPromoted  = "+promoted-slave"
	EventSwitch    = "+switch-master"
	instanceMaster = "master"
)

// Names of what the observer of a Cluster sees in CLUSTER NODES, one for each of Sentinel's that it stands for.
const (
	// EventPFail: a node does not hear another (fail?).
	EventPFail = "pfail"
	// EventFail: enough of them do not.
	EventFail = "fail"
	// EventTaken: a node says itself that it is master of slots which it did not have.
	EventTaken = "taken-over"
	// EventOwner: another node knows of that.
	EventOwner = "new-owner"
)

// Means is the Sentinel event that a name stands for.
func (e Event) Means() string {
	switch e.Name {
	case EventPFail:
		return EventSDown
	case EventFail:
		return EventODown
	case EventTaken:
		return EventPromoted
	case EventOwner:
		return EventSwitch
	default:
		return e.Name
	}
}

// Event is something that a Sentinel published. A Cluster publishes nothing of the kind; its observer makes events of
// what the nodes say about each other.
type Event struct {
	At time.Duration `json:"-"`
	// Seconds is At, for JSON.
	Seconds float64 `json:"at_seconds"`
	// Source names the Sentinel, or the node.
	Source string `json:"source"`
	// Name is the event's, such as +sdown.
	Name string `json:"name"`
	// Kind is what it is about: master, slave or sentinel; empty where the event has no such word.
	Kind string `json:"kind,omitempty"`
	// Text is the rest, as it was published.
	Text string `json:"text"`
}
