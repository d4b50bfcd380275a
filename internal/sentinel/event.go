package sentinel

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Event is something that a Sentinel announced. Options and values that an administrator set are left out, for a
// password may be among them.
type Event struct {
	// Name is that of the event, such as "+odown"; OtherEvent if it is not among EventNames.
	Name string
	// Kind is what it is about: "master", "slave" or "sentinel"; empty if it is about none.
	Kind string
	// Address is host:port of what it is about, and the new master of a +switch-master; empty if it is about none.
	Address string
	// Master is host:port of the master at that moment, and the old one of a +switch-master; empty if not told.
	Master string
	// Epoch is the newest that this Sentinel has told of.
	Epoch uint64
	// Elapsed is the time since the failover of this master began, which is the first +odown or +try-failover that any
	// Sentinel told of; 0 outside of one.
	Elapsed time.Duration
}

// OtherEvent is the name of events that are not told apart.
const OtherEvent = "other"

// The events that something here depends on.
const (
	downEvent     = "+sdown"
	agreedEvent   = "+odown"
	upEvent       = "-odown"
	tryEvent      = "+try-failover"
	promotedEvent = "+promoted-slave"
	switchEvent   = "+switch-master"
	epochEvent    = "+new-epoch"
	voteEvent     = "+vote-for-leader"
	updateEvent   = "+config-update-from"
)

// eventNames are the events that are told apart. They are those that sentinel.c of Redis 7.0 announces and that say
// something about a master, its failover, or a Sentinel's own state.
var eventNames = []string{
	downEvent, "-sdown", agreedEvent, upEvent, epochEvent, tryEvent, voteEvent, "+elected-leader", "+selected-slave",
	promotedEvent, "+failover-state-reconf-slaves", "+slave-reconf-sent", "+slave-reconf-inprog", "+slave-reconf-done",
	"+failover-end", "+failover-end-for-timeout", switchEvent, updateEvent, "+failover-detected",
	"-failover-abort-not-elected", "-failover-abort-no-good-slave", "-failover-abort-slave-timeout",
	"-failover-abort-master-is-back", "+convert-to-slave", "+fix-slave-config", "+slave", "+sentinel", "-dup-sentinel",
	"+sentinel-address-switch", "+monitor", "-monitor", "+reset-master", "+set", "+reboot", "+tilt", "-tilt",
}

// EventNames lists the names that an Event can have.
func EventNames() []string { return append(slices.Clone(eventNames), OtherEvent) }

// Fact tells whether each Sentinel tells of the same thing for itself, so that the epoch, which one of them may already
// have raised, does not make it another.
func (e Event) Fact() bool {
	return slices.Contains([]string{downEvent, "-sdown", agreedEvent, upEvent, switchEvent, epochEvent}, e.Name)
}

// parseEvent reads a message. It returns the name of the master that the event is about, empty for one that concerns
// the Sentinel as a whole.
func parseEvent(channel, payload string) (e Event, master string) {
	e.Name = OtherEvent
	if slices.Contains(eventNames, channel) {
		e.Name = channel
	}
	words := strings.Fields(payload)
	switch {
	case channel == switchEvent && len(words) == 5:
		e.Kind, master = "master", words[0]
		e.Master, _ = joinAddress(words[1], words[2])
		e.Address, _ = joinAddress(words[3], words[4])
	case channel == epochEvent && len(words) > 0:
		e.Epoch, _ = strconv.ParseUint(words[0], 10, 64)
	case channel == voteEvent && len(words) == 2:
		e.Epoch, _ = strconv.ParseUint(words[1], 10, 64)
	case len(words) >= 4 && words[0] == "master":
		e.Kind, master = "master", words[1]
		e.Address, _ = joinAddress(words[2], words[3])
		e.Master = e.Address
	case len(words) >= 8 && words[4] == "@" && slices.Contains([]string{"slave", "sentinel"}, words[0]):
		e.Kind, master = words[0], words[5]
		e.Address, _ = joinAddress(words[2], words[3])
		e.Master, _ = joinAddress(words[6], words[7])
	}
	return e, master
}
