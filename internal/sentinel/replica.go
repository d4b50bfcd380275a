package sentinel

import "time"

// Replica is a replica of the master as SENTINEL REPLICAS describes it. Sentinel asks a replica itself every 10 s, and
// every second while the master is down.
type Replica struct {
	// Address is host:port as announced.
	Address string
	// Healthy: the Sentinel reaches it.
	Healthy bool
	// Linked: its link to the master is up.
	Linked bool
	// LinkDown is how long the link has been down.
	LinkDown time.Duration
	// Offset is how far in the replication stream it is, in bytes.
	Offset int64
	// Priority is its replica-priority; 0 is never promoted.
	Priority int
}
