package cluster

import (
	"strconv"
	"sync"
)

// proof is the bucket that a shard proves to write: one in a slot of its own.
type proof struct {
	mu   sync.Mutex
	slot uint16
	key  string // empty until it was needed
}

// proofKey returns the bucket of a shard for redisstore.Config.ProofKey. One that owns no slot has to prove nothing: it
// is sent away.
func (s *Store) proofKey(sh *shard) string {
	var slot uint16
	if r := s.routes.Load(); r != nil {
		slot, _ = r.first(sh)
	}
	sh.proof.mu.Lock()
	defer sh.proof.mu.Unlock()
	if sh.proof.key == "" || sh.proof.slot != slot {
		sh.proof.slot, sh.proof.key = slot, keyIn(slot)
	}
	return sh.proof.key
}

// keyIn finds a key in the slot. A CRC spreads evenly, so it takes as many attempts as there are slots, a millisecond.
func keyIn(slot uint16) string {
	for i := 0; ; i++ {
		if key := "rl:proof:" + strconv.Itoa(i); Slot(key) == slot {
			return key
		}
	}
}
