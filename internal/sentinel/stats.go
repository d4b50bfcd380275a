package sentinel

import (
	"cmp"
	"slices"
	"time"
)

// Stats is what a Watcher knows, for people and metrics. It is a copy.
type Stats struct {
	// Master is host:port of the master as announced; empty while none is known.
	Master string `json:"master"`
	// Epoch is the configuration epoch of Master.
	Epoch uint64 `json:"epoch"`
	// Since is when Master was accepted.
	Since time.Time `json:"since"`
	// Switches counts the times that one master took the place of another.
	Switches uint64 `json:"switches"`
	// Known, Reachable and Agreeing count Sentinels: all, those that answer, and those of them that name Master.
	Known     int `json:"known"`
	Reachable int `json:"reachable"`
	Agreeing  int `json:"agreeing"`
	// Needed is how many Sentinels must agree that the master is down (quorum).
	Needed int `json:"needed"`
	// Quorum is what those that answer say of a failover: OK if any of them could have one.
	Quorum Quorum `json:"quorum"`
	// SDown and ODown: any Sentinel takes the master for down, or knows that enough of them do.
	SDown bool `json:"sdown"`
	ODown bool `json:"odown"`
	// Replicas are those last reported, at most 64.
	Replicas []Replica `json:"replicas"`
	// FailoverTook is how long the last failover took from the first +odown or +try-failover to the first +switch-master;
	// FailoverEnded is when that was. Zero if none was heard.
	FailoverTook  time.Duration `json:"failover_took"`
	FailoverEnded time.Time     `json:"failover_ended"`
	// Sentinels are all that are known, in the order of their addresses.
	Sentinels []Member `json:"sentinels"`
}

// HealthyReplicas counts the replicas that the Sentinels reach and that are linked to the master.
func (s Stats) HealthyReplicas() int {
	n := 0
	for _, r := range s.Replicas {
		if r.Healthy && r.Linked {
			n++
		}
	}
	return n
}

// Lag is how far, in bytes, the replica that is furthest behind is behind the one that is furthest ahead. The master's
// own offset is not among what Sentinel tells.
func (s Stats) Lag() int64 {
	if len(s.Replicas) == 0 {
		return 0
	}
	byOffset := func(x, y Replica) int { return cmp.Compare(x.Offset, y.Offset) }
	return slices.MaxFunc(s.Replicas, byOffset).Offset - slices.MinFunc(s.Replicas, byOffset).Offset
}

// LinkDown is how long the replica that has been cut off the longest has had no link to the master.
func (s Stats) LinkDown() time.Duration {
	var longest time.Duration
	for _, r := range s.Replicas {
		longest = max(longest, r.LinkDown)
	}
	return longest
}

// Stats returns what is known now.
func (w *Watcher) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Stats{
		Master: w.ballot.accepted.master, Epoch: w.ballot.accepted.epoch, Since: w.since, Switches: w.switches,
		Known: len(w.posts), Agreeing: w.ballot.agreeing(), Quorum: w.quorum(),
		FailoverTook: w.failover.took, FailoverEnded: w.failover.ended,
	}
	for _, p := range w.posts {
		if p.reachable {
			s.Reachable++
			s.Needed = max(s.Needed, p.told.quorum)
			s.SDown = s.SDown || p.told.flags.has("s_down")
			s.ODown = s.ODown || p.told.flags.has("o_down")
		}
		s.Sentinels = append(s.Sentinels, p.member())
	}
	s.Replicas = w.replicas()
	slices.SortFunc(s.Sentinels, func(x, y Member) int { return cmp.Compare(x.Address, y.Address) })
	return s
}
