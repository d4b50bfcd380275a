package cluster

import (
	"slices"
	"sync"
	"time"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// scattered is a call that is decided in parts, each of them atomic. If all admit, it is admitted. If one denies, what
// the others were charged is given back as soon as it is known, and the call reads as if it had never been charged. If
// one fails, the call fails of the same at once. A part that failed may have been charged all the same, which nobody
// can know, and is not given back: in doubt, less is admitted.
type scattered struct {
	store *Store
	call  *failure.Call
	parts []*part

	mu      sync.Mutex
	waiting int  // parts without an answer
	denied  bool // by some part
	over    bool // the call is completed, and no longer ours
}

// part is what is decided together.
type part struct {
	*failure.Call
	where   []int // its charges are in the whole call
	shard   *shard
	permit  failure.Permit
	sent    time.Time
	known   bool // to deny, without being asked
	charged bool
	owes    bool // it was charged, and has not given back
}

// cut says which charges can be decided together.
type cut uint8

const (
	// bySlot: those of a slot.
	bySlot cut = 1 + iota
	// byKey: none. It is for a slot whose keys are at two nodes.
	byKey
)

// scatter has c decided in parts.
func (s *Store) scatter(c *failure.Call, by cut) {
	r := s.routes.Load()
	if r == nil {
		c.Fail(failure.Cause(s.refusal.Load()))
		return
	}
	f := &scattered{store: s, call: c}
	f.divide(by)
	if refused := f.admit(r); refused != failure.CauseNone {
		c.Fail(refused)
		return
	}
	f.foresee()
	if f.waiting == 0 {
		f.finish()
		return
	}
	f.submit()
}

// submit asks for each part, until one has failed.
func (f *scattered) submit() {
	for _, p := range f.parts {
		switch {
		case p.known:
		case f.ended():
			p.shard.breaker.Settle(p.permit, failure.CauseCanceled)
		default:
			p.shard.store.Submit(p.Call)
		}
	}
}

func (f *scattered) ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over
}

// divide makes the parts. They have charges of their own: a part may outlive the call.
func (f *scattered) divide(by cut) {
	charges := f.call.Charges
	slots := make([]uint16, len(charges))
	for i := range charges {
		slots[i] = Slot(charges[i].Key)
	}
	for i := range charges {
		same := func(p *part) bool { return by == bySlot && slots[p.where[0]] == slots[i] }
		if at := slices.IndexFunc(f.parts, same); at >= 0 {
			f.parts[at].where = append(f.parts[at].where, i)
			continue
		}
		f.parts = append(f.parts, &part{where: []int{i}})
	}
	now := time.Now()
	for _, p := range f.parts {
		own := make([]limit.Charge, len(p.where))
		for i, at := range p.where {
			own[i] = charges[at]
		}
		p.sent = now
		p.Call = failure.NewPart(own, f.call.Deadline, func(*failure.Call) { f.answered(p) })
		slot := slots[p.where[0]]
		p.Route = failure.Route{Slot: slot, Alone: f.store.restless.has(slot), Dry: by == byKey && f.call.Route.Dry}
		if by == byKey {
			p.Route.Hops = f.call.Route.Hops
		}
	}
	f.waiting = len(f.parts)
}

// admit asks the breaker of every shard, once, before any is charged. If one refuses, nobody is asked.
func (f *scattered) admit(r *routes) (refused failure.Cause) {
	for i, p := range f.parts {
		p.shard = r.owner(p.Route.Slot)
		switch {
		case p.shard == nil:
			refused = failure.CauseClusterDown
		case slices.ContainsFunc(f.parts[:i], func(other *part) bool { return other.shard == p.shard }):
		default:
			p.permit, refused = p.shard.breaker.Admit()
		}
		if refused != failure.CauseNone {
			for _, admitted := range f.parts[:i] {
				admitted.shard.breaker.Settle(admitted.permit, failure.CauseCanceled)
			}
			return refused
		}
	}
	return failure.CauseNone
}

// foresee looks for parts of which it is known that they deny. If there is one, nothing has to be charged and given
// back: the others are only asked what they would say.
func (f *scattered) foresee() {
	for _, p := range f.parts {
		if p.shard.store.Denies(p.Charges, p.Results) {
			p.known, f.denied = true, true
			f.waiting--
		}
	}
	for _, p := range f.parts {
		p.Route.Dry = p.Route.Dry || f.denied
	}
}

// answered takes the answer of a part, from any goroutine.
func (f *scattered) answered(p *part) {
	p.shard.breaker.Settle(p.permit, evidence(p.Call))
	cause := p.Cause()
	f.mu.Lock()
	f.waiting--
	switch {
	case cause != failure.CauseNone:
	case slices.ContainsFunc(p.Results, func(r limit.Result) bool { return !r.Allowed }):
		f.denied = true
	default:
		p.charged = !p.Route.Dry
		p.owes = p.charged
	}
	fails, finishes := !f.over && cause != failure.CauseNone, !f.over && cause == failure.CauseNone && f.waiting == 0
	f.over = f.over || fails || finishes
	back := f.debts(fails || f.over && !finishes)
	f.mu.Unlock()
	for _, owing := range back {
		f.store.refund(owing)
	}
	switch {
	case fails && p.Bug() != nil:
		f.call.Panic(p.Bug())
	case fails:
		f.call.Fail(cause)
	case finishes:
		f.finish()
	}
}

// debts returns the parts that must give back now, each of them once. The lock must be held.
func (f *scattered) debts(failed bool) (back []*part) {
	if !f.denied && !failed {
		return nil
	}
	for _, p := range f.parts {
		if p.owes {
			p.owes = false
			back = append(back, p)
		}
	}
	return back
}

// finish puts the answers of all parts together.
func (f *scattered) finish() {
	c := f.call
	for _, p := range f.parts {
		c.At = max(c.At, p.At)
		for i, at := range p.where {
			c.Results[at] = p.Results[i]
			if charge := &p.Charges[i]; f.denied && p.charged {
				c.Results[at] = charge.Limit.Uncharged(charge.Cost, p.Results[i])
			}
		}
	}
	c.Finish()
}
