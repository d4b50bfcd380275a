package sentinel

import (
	"cmp"
	"slices"
	"time"
)

const (
	// firstPatience is how long a majority is waited for before the first master is taken from fewer.
	firstPatience = time.Second
	// pendingPatience is how long an announcement that was believed stands without its confirmation.
	pendingPatience = time.Second
	// renewalPatience is how long a majority must tell of an older epoch, and nobody trusted contradict, until it is
	// believed that the Sentinels were set up anew.
	renewalPatience = 5 * time.Second
)

// claim is a master and the configuration epoch under which a Sentinel names it. Every failover has an epoch of its
// own, higher than all before: of two claims, the one with the higher epoch is the newer.
type claim struct {
	master string // host:port as announced
	epoch  uint64
}

// voter is one Sentinel as the ballot knows it.
type voter struct {
	claim
	announced time.Time // its last announcement: answers to earlier questions are out of date
	present   bool      // it answered the last question
	trusted   bool      // it once named what a majority stood behind
}

// ballot decides which of the masters that Sentinels name is the one. It does no I/O and reads no clock.
//
//	nothing ──┬─ a majority names the same master ─────────────────────────────► sound
//	          └─ a second passed, and some name one ─► unsound ── a majority ──► sound
//
// While unsound, the highest epoch that anybody names is followed, after renewalPatience even down. A sound master is
// replaced
//
//   - by a trusted Sentinel that names one under a higher epoch, at once;
//   - by a majority that names one under a higher epoch, or another one under the same, at once;
//   - by the announcement of a Sentinel whose last word is what is accepted, at once. Its confirmation follows;
//   - by a majority that names one under a lower epoch, after renewalPatience without any trusted Sentinel that
//     stands by the accepted epoch: the Sentinels were set up anew, and their epochs began again.
//
// A Sentinel is trusted once it has named what a majority stood behind. So one of somebody else's deployment, at an
// address that used to be ours, needs a majority however high its epochs are. One that slept through a failover has a
// lower epoch and is not heard. When nobody answers, what is accepted stays accepted.
type ballot struct {
	accepted claim
	sound    bool // a majority stood behind what is accepted, or behind what led to it
	voters   map[string]*voter
	size     int // how many Sentinels there are, whether they answer or not

	pending      string    // who made the announcement that was accepted and is not confirmed yet
	pendingSince time.Time // when
	before       uint64    // the epoch that was accepted before it

	firstHeard  time.Time // when anybody first named a master
	renewal     string    // the master that a majority names under an older epoch
	renewalFrom time.Time // since when
}

func newBallot() *ballot { return &ballot{voters: map[string]*voter{}} }

// polled tells that a Sentinel answered c to a question sent at asked.
func (b *ballot) polled(id string, c claim, asked, now time.Time) {
	v := b.voter(id)
	if asked.Before(v.announced) {
		return
	}
	v.claim, v.present = c, true
	if b.firstHeard.IsZero() {
		b.firstHeard = now
	}
	b.judge(id, v, now)
	v.trusted = v.trusted || b.sound && v.claim == b.accepted
}

// announced tells that a Sentinel said +switch-master. Its epoch is not in it, but a Sentinel whose last word was what
// is accepted can have left that only for a newer one.
func (b *ballot) announced(id, from, to string, now time.Time) {
	v := b.voter(id)
	inStep := b.known() && v.claim == b.accepted && from == b.accepted.master
	v.announced = now
	if !inStep || b.isPending(now) && b.pending != id {
		return
	}
	before := b.accepted.epoch
	if b.pending != "" {
		before = b.before
	}
	v.claim = claim{master: to, epoch: b.accepted.epoch + 1}
	b.accept(v.claim)
	b.pending, b.pendingSince, b.before = id, now, before
}

// lost tells that a Sentinel does not answer, or does not know the master.
func (b *ballot) lost(id string) {
	if v := b.voters[id]; v != nil {
		v.present = false
	}
}

// forget tells that a Sentinel is gone for good.
func (b *ballot) forget(id string) { delete(b.voters, id) }

// known tells whether any master was accepted yet.
func (b *ballot) known() bool { return b.accepted.master != "" }

// isPending tells whether the accepted epoch is still a guess.
func (b *ballot) isPending(now time.Time) bool {
	return b.pending != "" && now.Sub(b.pendingSince) < pendingPatience
}

// judge decides what the newest claim, of v, changes.
func (b *ballot) judge(id string, v *voter, now time.Time) {
	switch {
	case b.pending == id:
		b.confirm(v)
	case b.isPending(now) && v.master == b.accepted.master && v.epoch > b.before:
		b.accept(v.claim)
	case b.isPending(now):
		// Which of the two is newer is not known before the confirmation; this Sentinel will be asked again.
	case v.trusted && v.epoch > b.accepted.epoch:
		b.accept(v.claim)
	default:
		b.count(now)
	}
}

// confirm takes the word of the Sentinel whose announcement was believed, even if it says now that nothing moved.
func (b *ballot) confirm(v *voter) {
	b.pending = ""
	if v.epoch >= b.before {
		b.accept(v.claim)
	}
}

// count looks for a majority.
func (b *ballot) count(now time.Time) {
	c, found := b.majority()
	renews := false
	switch {
	case found && (!b.sound || c == b.accepted):
		b.sound = true
		b.accept(c)
	case !b.sound:
		renews = b.follow(now)
	case found && (c.epoch > b.accepted.epoch || c.epoch == b.accepted.epoch && c.master != b.accepted.master):
		b.accept(c)
	case found && c.epoch < b.accepted.epoch && !b.defended():
		renews = true
		b.renew(c, now)
	}
	if !renews {
		b.renewal = ""
	}
}

// follow makes do with fewer than a majority. It tells whether those that answer name an older epoch.
func (b *ballot) follow(now time.Time) (renews bool) {
	c, found := b.best()
	switch {
	case !found || now.Sub(b.firstHeard) < firstPatience:
	case !b.known() || c.epoch > b.accepted.epoch:
		b.accept(c)
	case c.epoch < b.accepted.epoch:
		b.renew(c, now)
		return true
	}
	return false
}

// renew accepts c, whose epoch is older than the accepted one, if it has been named for long enough.
func (b *ballot) renew(c claim, now time.Time) {
	if b.renewal != c.master {
		b.renewal, b.renewalFrom = c.master, now
	}
	if now.Sub(b.renewalFrom) >= renewalPatience {
		b.accept(c)
	}
}

// majority is the claim that more than half of all Sentinels make. Its epoch is the highest that a majority reached:
// one Sentinel alone cannot raise it.
func (b *ballot) majority() (claim, bool) {
	epochs := map[string][]uint64{}
	for _, v := range b.voters {
		if v.present {
			epochs[v.master] = append(epochs[v.master], v.epoch)
		}
	}
	needed := max(b.size, len(b.voters))/2 + 1
	for master, reached := range epochs {
		if len(reached) < needed {
			continue
		}
		slices.SortFunc(reached, func(x, y uint64) int { return cmp.Compare(y, x) })
		return claim{master: master, epoch: reached[needed-1]}, true
	}
	return claim{}, false
}

// best is the newest claim of those that answer.
func (b *ballot) best() (best claim, found bool) {
	for _, v := range b.voters {
		if !v.present {
			continue
		}
		newer := cmp.Or(cmp.Compare(v.epoch, best.epoch), cmp.Compare(best.master, v.master)) > 0
		if !found || newer {
			best, found = v.claim, true
		}
	}
	return best, found
}

// defended tells whether a Sentinel that we trust still stands by the accepted epoch, or a newer one.
func (b *ballot) defended() bool {
	for _, v := range b.voters {
		if v.present && v.trusted && v.epoch >= b.accepted.epoch {
			return true
		}
	}
	return false
}

func (b *ballot) accept(c claim) {
	b.accepted, b.pending = c, ""
	for _, v := range b.voters {
		v.trusted = v.trusted || b.sound && v.present && v.claim == c
	}
}

func (b *ballot) voter(id string) *voter {
	v := b.voters[id]
	if v == nil {
		v = &voter{}
		b.voters[id] = v
	}
	return v
}

// agreeing is the number of Sentinels that answer and name the accepted master.
func (b *ballot) agreeing() int {
	n := 0
	for _, v := range b.voters {
		if v.present && v.master == b.accepted.master {
			n++
		}
	}
	return n
}
