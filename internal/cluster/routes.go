package cluster

import (
	"maps"
	"sync/atomic"
)

// routes say which shard decides the keys of each slot. They are immutable.
type routes struct {
	owners [Slots]uint16 // 1 + index into shards; 0: nobody
	shards []*shard
	// named has the shards by every name that a node may call them, NAT applied.
	named map[string]*shard
	// strangers are how many of the shards the topology does not show.
	strangers int
}

// owner is nil if nobody has the slot.
func (r *routes) owner(slot uint16) *shard {
	i := r.owners[slot]
	if i == 0 {
		return nil
	}
	return r.shards[i-1]
}

// with returns routes that know one shard more, which owns nothing.
func (r *routes) with(sh *shard) *routes {
	out := *r
	out.shards = append(r.shards[:len(r.shards):len(r.shards)], sh)
	out.named = maps.Clone(r.named)
	out.named[sh.address] = sh
	out.strangers++
	return &out
}

// first returns a slot of the shard, always the same while it has it; false if it has none.
func (r *routes) first(sh *shard) (slot uint16, found bool) {
	for slot := range uint16(Slots) {
		if r.owner(slot) == sh {
			return slot, true
		}
	}
	return 0, false
}

// heir tells whether the shard has owned nothing so far and serves nobody. It was opened too early, for a node that was
// still a replica, and what its lanes and its breaker learnt from that is of no use.
func (r *routes) heir(sh *shard) bool { return sh.store.Stats().Connected == 0 && r.owns(sh) == 0 }

// owned counts the slots of each shard, in the order of shards.
func (r *routes) owned() []int {
	counts := make([]int, len(r.shards))
	for _, i := range r.owners {
		if i > 0 {
			counts[i-1]++
		}
	}
	return counts
}

// restless remembers the slots that have lately been seen on their way from one node to another. Their calls share no
// command: those whose bucket has moved and those whose has not must go different ways.
type restless [Slots / 64]atomic.Uint64

func (r *restless) add(slot uint16)      { r[slot/64].Or(1 << (slot % 64)) }
func (r *restless) has(slot uint16) bool { return r[slot/64].Load()&(1<<(slot%64)) != 0 }

func (r *restless) clear() {
	for i := range r {
		r[i].Store(0)
	}
}

// at returns the shard that is dialed at the address.
func (r *routes) at(address string) *shard {
	for _, sh := range r.shards {
		if sh.address == address {
			return sh
		}
	}
	return nil
}

// owns counts the slots of one shard.
func (r *routes) owns(sh *shard) (slots int) {
	for _, i := range r.owners {
		if i > 0 && r.shards[i-1] == sh {
			slots++
		}
	}
	return slots
}
