package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill"
	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

// ending is what must come of a fault.
type ending uint8

const (
	// unnoticed: decisions stay ordinary throughout.
	unnoticed ending = 1 + iota
	// outage: nobody takes the place of what is broken, and decisions are ordinary again once it is mended.
	outage
	// failover: another node becomes master, and decisions are ordinary again once that is announced.
	failover
)

// fault is a row of the matrix.
type fault struct {
	// id selects it, name is what the tables call it.
	id, name string
	// done says what is done, for the list of faults; ends what the recovery counts from where nobody fails over.
	done, ends string
	// cases are by the topology that they are played on. A fault makes no sense where it has none.
	cases map[drill.Topology]variant
}

// variant is a fault on one topology.
type variant struct {
	ending      ending
	gated       bool
	emptied     bool
	minReplicas int
	// orderly is a failover in which the old master decides until the service leaves it.
	orderly bool
	// ends is that of the fault, where it is another on this topology.
	ends string
	// after is how long the load runs on once all is well; 0 is the usual time.
	after time.Duration
	play  func(context.Context, *drill.Scene) error
}

// splitBrain is how long an old master may go on deciding what its successor does not learn: until the service has the
// successor decide, however long that takes.
func (v variant) splitBrain() time.Duration {
	if v.orderly {
		return time.Minute
	}
	return 0
}

// drill is the variant as internal/drill plays it.
func (v variant) drill(f fault, on drill.Topology) drill.Fault {
	d := drill.Fault{
		Name: on.String() + "-" + f.id, Title: f.done, On: on, Gated: v.gated, MinReplicas: v.minReplicas,
		Expect: journal.NoFailover, Emptied: v.emptied, SplitBrain: v.splitBrain(), Play: v.play,
	}
	switch v.ending {
	case unnoticed:
		d.Calm = true
	case outage:
		d.Blackout = true
	case failover:
		d.Expect = journal.Failover
	}
	return d
}

// topologies are in the order of the document.
var topologies = []drill.Topology{drill.Standalone, drill.Sentinel, drill.Cluster}

// everywhere is the same variant on all topologies.
func everywhere(v variant) map[drill.Topology]variant {
	return map[drill.Topology]variant{drill.Standalone: v, drill.Sentinel: v, drill.Cluster: v}
}

// lasting is a fault that lasts until another master is announced where there can be one, and a while where not.
func lasting(v variant, begin, end step) map[drill.Topology]variant {
	alone, replaced := v, v
	alone.ending, alone.play = outage, forAWhile(begin, end)
	replaced.ending, replaced.play = failover, untilReplaced(begin, end)
	replaced.emptied, replaced.after = false, 0 // the next master knows what was decided
	return map[drill.Topology]variant{drill.Standalone: alone, drill.Sentinel: replaced, drill.Cluster: replaced}
}

// selected are the names that -only may hold: faults, topologies, and topology/fault.
func selected(only string, on drill.Topology, f fault) bool {
	if only == "" {
		return true
	}
	return slices.ContainsFunc(strings.Split(only, ","), func(name string) bool {
		return name == f.id || name == on.String() || name == key(on, f)
	})
}

// unknown are the names in -only that select nothing.
func unknown(only string) []string {
	if only == "" {
		return nil
	}
	return slices.DeleteFunc(strings.Split(only, ","), func(name string) bool {
		return slices.ContainsFunc(topologies, func(on drill.Topology) bool {
			return slices.ContainsFunc(faults(), func(f fault) bool {
				_, played := f.cases[on]
				return played && selected(name, on, f)
			})
		})
	})
}

// key names a row of the results.
func key(on drill.Topology, f fault) string { return on.String() + "/" + f.id }
