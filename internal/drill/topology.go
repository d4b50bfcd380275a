package drill

import (
	"fmt"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

// Topology is a set of Redis servers that a fault is played on.
type Topology uint8

// The topologies.
const (
	// Standalone is one server, with nothing to take its place.
	Standalone Topology = 1 + iota
	// Sentinel is a master with two replicas under three Sentinels.
	Sentinel
	// Cluster is three masters with a replica each.
	Cluster
)

// String names the topology.
func (t Topology) String() string {
	switch t {
	case Standalone:
		return "standalone"
	case Sentinel:
		return "sentinel"
	case Cluster:
		return "cluster"
	default:
		return fmt.Sprintf("topology(%d)", uint8(t))
	}
}

// words are for a reader.
func (t Topology) words() string {
	switch t {
	case Standalone:
		return "one server"
	case Sentinel:
		return "1 master, 2 replicas and 3 Sentinels"
	case Cluster:
		return "a Cluster of 3 masters with a replica each"
	default:
		return t.String()
	}
}

// category is what the parts of a drill that differ in a Cluster go by.
func (t Topology) category() journal.Category {
	if t == Cluster {
		return journal.Cluster
	}
	return journal.Given
}
