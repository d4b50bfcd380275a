package journal

import "fmt"

// Category is a kind of fault, as the specification's failure matrix lists them.
type Category uint8

// The categories.
const (
	// MasterExit is a master that is told to stop, and does.
	MasterExit Category = 1 + iota
	// MasterCrash is a machine that is lost with the master and the Sentinel on it.
	MasterCrash
	// Partition is a network that falls apart.
	Partition
	// ReplicaLag is a master lost while one replica is behind.
	ReplicaLag
	// SentinelLoss is the loss of Sentinels, up to the majority.
	SentinelLoss
	// Cluster is a fault of a Redis Cluster.
	Cluster
	// Given is a fault of the caller's own.
	Given
	// Attached is whatever happens to somebody's own deployment.
	Attached
)

// Categories lists those that a drill can cause, in order.
var Categories = [...]Category{MasterExit, MasterCrash, Partition, ReplicaLag, SentinelLoss, Cluster}

// String is the category as the command line takes it.
func (c Category) String() string {
	switch c {
	case MasterExit:
		return "master-exit"
	case MasterCrash:
		return "master-crash"
	case Partition:
		return "partition"
	case ReplicaLag:
		return "replica-lag"
	case SentinelLoss:
		return "sentinel-loss"
	case Cluster:
		return "cluster"
	case Given:
		return "given"
	case Attached:
		return "attached"
	default:
		return fmt.Sprintf("category(%d)", uint8(c))
	}
}

// MarshalText is String, for JSON.
func (c Category) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
