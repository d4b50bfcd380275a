package journal

import "time"

// Round is a look at all data nodes.
type Round struct {
	At    time.Duration
	Nodes []NodeState
}

// NodeState is what one data node said of itself.
type NodeState struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	// Error says why nothing else is known; empty if it answered.
	Error string `json:"error,omitempty"`
	// Master is its own view of its role.
	Master bool `json:"master"`
	// LinkUp is whether a replica hears its master.
	LinkUp bool `json:"link_up"`
	// LagSeconds is how long ago its master last heard of a replica; -1 if the master does not list it.
	LagSeconds int `json:"lag_seconds"`
	// Offset is how far it is in the replication stream, in bytes.
	Offset int64 `json:"offset"`
	// Script is whether it has the service's script.
	Script bool `json:"script"`
	// Accepted are the connections that it has accepted since it was started.
	Accepted int64 `json:"connections_accepted"`
}

// maxLag is the lag of a healthy replica: replicas report once a second.
const maxLag = 1

// masters is how many nodes say that they are one.
func (r Round) masters() (n int) {
	for _, s := range r.Nodes {
		if s.Error == "" && s.Master {
			n++
		}
	}
	return n
}

// healthy is whether all nodes answer and have the script, and every replica follows closely. In a Cluster, where
// masters is above 1, the script is needed on masters only.
func (r Round) healthy(masters int) bool {
	for _, s := range r.Nodes {
		if s.Error != "" || !s.Script && (s.Master || masters == 1) {
			return false
		}
		if !s.Master && (!s.LinkUp || s.LagSeconds < 0 || s.LagSeconds > maxLag) {
			return false
		}
	}
	return r.masters() == masters
}

// node is the state of the node of that name; its Error says so if it is not known.
func (r Round) node(name string) NodeState {
	for _, s := range r.Nodes {
		if s.Name == name {
			return s
		}
	}
	return NodeState{Name: name, Error: "never seen"}
}
