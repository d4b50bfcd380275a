package preflight

import "fmt"

// Setup is how the servers stand to each other.
type Setup uint8

// The set-ups.
const (
	// Standalone is one server.
	Standalone Setup = 1 + iota
	// Sentinel is a master and its replicas, watched by Sentinels.
	Sentinel
	// Cluster is several masters that share the slots.
	Cluster
)

// String names the set-up.
func (s Setup) String() string {
	switch s {
	case Standalone:
		return "standalone"
	case Sentinel:
		return "sentinel"
	case Cluster:
		return "cluster"
	default:
		return fmt.Sprintf("setup(%d)", uint8(s))
	}
}

// MarshalText makes JSON show the name.
func (s Setup) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Sets of set-ups, for the catalogue.
var (
	everywhere  = []Setup{Standalone, Sentinel, Cluster}
	redundant   = []Setup{Sentinel, Cluster}
	sentinels   = []Setup{Sentinel}
	clusterOnly = []Setup{Cluster}
)
