package journal

import "time"

// Vote is what one Sentinel answered to SENTINEL CKQUORUM.
type Vote struct {
	At time.Duration
	// Sentinel names it.
	Sentinel string
	// OK is whether it can still reach quorum and majority.
	OK bool
	// Text is its answer, or why there is none.
	Text string
}

// VoteChange is when a Sentinel began to answer CKQUORUM in another way.
type VoteChange struct {
	At       float64 `json:"at_seconds"`
	Sentinel string  `json:"sentinel"`
	OK       bool    `json:"ok"`
	Text     string  `json:"text"`
}

func (j *Journal) voteChanges() []VoteChange {
	var list []VoteChange
	last := map[string]Vote{}
	for _, v := range j.Votes {
		before, known := last[v.Sentinel]
		last[v.Sentinel] = v
		if known && before.OK == v.OK && before.Text == v.Text {
			continue
		}
		list = append(list, VoteChange{At: v.At.Seconds(), Sentinel: v.Sentinel, OK: v.OK, Text: v.Text})
	}
	return list
}
