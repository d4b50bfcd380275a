package sentinel

import (
	"errors"
	"time"
)

// notices are calls of hooks, to be made once mu is free.
type notices []func()

// change makes a change that p brings under the lock, and tells the hooks what came of it afterwards. A post that was
// dismissed meanwhile brings nothing any more.
func (w *Watcher) change(p *post, apply func(now time.Time, n *notices)) {
	for _, tell := range w.changed(p, apply) {
		tell()
	}
}

func (w *Watcher) changed(p *post, apply func(now time.Time, n *notices)) (n notices) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.posts[p.address] != p {
		return nil
	}
	now := time.Now()
	before := w.ballot.accepted.master
	apply(now, &n)
	w.noticeQuorum(&n)
	w.settle(before, now, &n)
	return n
}

// noticeQuorum tells whether a failover could happen, once somebody said so or nobody can. The caller holds mu.
func (w *Watcher) noticeQuorum(n *notices) {
	q := w.quorum()
	first := w.lastQuorum == Quorum{}
	if first && q.Text == nobodySays && w.untried() || !first && q.OK == w.lastQuorum.OK {
		return
	}
	w.lastQuorum = q
	*n = append(*n, func() { w.cfg.Hooks.quorum(q) })
}

// untried tells whether a Sentinel was not even tried yet. The caller holds mu.
func (w *Watcher) untried() bool {
	for _, p := range w.posts {
		if !p.tried {
			return true
		}
	}
	return false
}

// settle draws the consequences of a change of the ballot. The caller holds mu.
func (w *Watcher) settle(before string, now time.Time, n *notices) {
	after := w.ballot.accepted.master
	if after == before {
		return
	}
	w.since = now
	if before != "" {
		w.switches++
	}
	if before == "" || w.cfg.dialed(after) != w.cfg.dialed(before) {
		close(w.moved)
		w.moved = make(chan struct{})
	}
	s := Switch{From: before, To: after, Epoch: w.ballot.accepted.epoch}
	if w.ballot.isPending(now) {
		s.Epoch = 0
	}
	if w.failover.master == before && !w.failover.isOver(now) {
		s.Took = now.Sub(w.failover.began)
	}
	*n = append(*n, func() { w.cfg.Hooks.switched(s) })
}

// heard takes an event.
func (w *Watcher) heard(p *post, channel, payload string) {
	e, master := parseEvent(channel, payload)
	if master != "" && master != w.cfg.Master {
		return
	}
	w.change(p, func(now time.Time, n *notices) {
		p.epoch = max(p.epoch, e.Epoch)
		e.Epoch = p.epoch
		e.Elapsed = w.failover.note(e, now)
		switch {
		case e.Name == switchEvent && e.Master != "" && e.Address != "":
			w.ballot.announced(p.voter(), e.Master, e.Address, now)
			w.alert(now)
		case e.Kind == "master" && (e.Name == downEvent || e.Name == agreedEvent || e.Name == tryEvent):
			w.alert(now)
		}
		*n = append(*n, func() { w.cfg.Hooks.event(p.address, e) })
	})
	if e.Kind == "master" || e.Name == promotedEvent || e.Name == updateEvent {
		p.poke()
	}
}

// answered takes an answer.
func (w *Watcher) answered(p *post, a answer) {
	w.change(p, func(now time.Time, n *notices) {
		if !p.reachable {
			*n = append(*n, func() { w.cfg.Hooks.found(p.address) })
		}
		p.reachable, p.ignorant, p.tried = true, false, true
		p.claim, p.told, p.epoch = a.claim, a.state, max(p.epoch, a.epoch)
		if a.trouble != nil {
			p.trouble = a.trouble
		}
		if a.quorum != (Quorum{}) {
			p.quorum = a.quorum
		}
		if a.state.flags.down() || a.state.flags.has("failover_in_progress") {
			w.alert(now)
		}
		if a.detailed {
			p.replicas, p.reported = a.replicas, now
			p.peers = a.peers
			w.reviewRoster(now)
		}
		w.ballot.polled(p.voter(), a.claim, a.asked, now)
	})
}

// failed takes note that a Sentinel cannot be asked, or knows nothing.
func (w *Watcher) failed(p *post, err error) {
	w.change(p, func(now time.Time, n *notices) {
		if p.reachable {
			p.lostAt = now
		}
		if p.reachable || !p.tried {
			*n = append(*n, func() { w.cfg.Hooks.lost(p.address, err) })
		}
		p.reachable, p.tried, p.trouble = false, true, err
		p.ignorant = errors.Is(err, ErrUnknownMaster)
		if !w.answers(p.voter()) {
			w.ballot.lost(p.voter())
		}
	})
}

// listening takes note of a subscription. What was said before it is made good for by asking.
func (w *Watcher) listening(p *post) {
	w.change(p, func(time.Time, *notices) { p.subscribed = true })
	p.poke()
}

// deafened takes note that there is no subscription.
func (w *Watcher) deafened(p *post, err error) {
	w.change(p, func(time.Time, *notices) { p.subscribed, p.trouble = false, err })
}
