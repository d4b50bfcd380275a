// Package sentinel says where the master of a Redis deployment is, by watching its Sentinels: it listens to the events
// of every Sentinel it knows, asks each of them again and again, and decides from what they say.
//
// It does not talk to the master or to replicas, and does not know what is kept in them; that the server it names has
// the role of a master is for whoever dials it to verify. Nor does it decide that a master is down: Sentinels do.
//
// Which address is believed is one state machine without I/O, ballot. A Watcher may be used by several goroutines at
// once; its Run must be going for anything to happen.
package sentinel

import "errors"

var (
	// ErrNoSentinel means that no Sentinel can be reached, or none lets us in.
	ErrNoSentinel = errors.New("no Sentinel answers")
	// ErrUnknownMaster means that Sentinels answer, and none of them knows a master of that name.
	ErrUnknownMaster = errors.New("no Sentinel knows this master")
	// ErrUndecided means that Sentinels name masters, but not yet enough of them the same one.
	ErrUndecided = errors.New("the Sentinels do not agree yet")
)
