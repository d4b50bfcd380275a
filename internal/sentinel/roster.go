package sentinel

import (
	"slices"
	"time"
)

// identified takes note of a Sentinel's own id. One that is known by two addresses is watched at the configured one.
func (w *Watcher) identified(p *post, id string) {
	w.change(p, func(time.Time, *notices) {
		old := p.voter()
		p.id = id
		if old != p.voter() && !w.isVoter(old) {
			w.ballot.forget(old)
		}
		for _, twin := range w.posts {
			if twin == p || id == "" || twin.id != id || !twin.reachable {
				continue
			}
			switch {
			case p.origin == learnt:
				w.dismiss(p)
			case twin.origin == learnt:
				w.dismiss(twin)
			}
		}
		w.ballot.size = w.electorate()
	})
}

// reviewRoster adds the Sentinels that others tell of, and forgets those that are gone. The caller holds mu.
func (w *Watcher) reviewRoster(now time.Time) {
	named := map[string]bool{}
	for _, p := range w.posts {
		if !p.reachable {
			continue
		}
		for _, other := range p.peers {
			named[other.address] = true
			w.learn(other)
		}
	}
	for _, p := range w.posts {
		gone := !p.reachable && !named[p.address] && now.Sub(p.lostAt) >= w.cfg.ForgetAfter
		if p.origin == learnt && gone {
			w.dismiss(p)
		}
	}
	w.ballot.size = w.electorate()
}

// learn has another Sentinel watched, unless it is already, at this address or another. The caller holds mu.
func (w *Watcher) learn(other peer) {
	if w.watch == nil || w.posts[other.address] != nil || len(w.posts) >= w.cfg.MaxSentinels {
		return
	}
	for _, p := range w.posts {
		if p.id != "" && p.id == other.id && p.reachable {
			return
		}
	}
	p := newPost(w, other.address, learnt)
	w.posts[other.address] = p
	w.watch(p)
}

// dismiss forgets a Sentinel. The caller holds mu.
func (w *Watcher) dismiss(p *post) {
	p.stop()
	if w.posts[p.address] == p {
		delete(w.posts, p.address)
	}
	if !w.isVoter(p.voter()) {
		w.ballot.forget(p.voter())
	}
}

// electorate is the number of Sentinels, whatever the number of their addresses. The caller holds mu.
func (w *Watcher) electorate() int {
	var voters []string
	for _, p := range w.posts {
		voters = append(voters, p.voter())
	}
	slices.Sort(voters)
	return len(slices.Compact(voters))
}

// isVoter tells whether any post is the Sentinel's. The caller holds mu.
func (w *Watcher) isVoter(voter string) bool {
	for _, p := range w.posts {
		if p.voter() == voter {
			return true
		}
	}
	return false
}

// answers tells whether the Sentinel can be asked at any of its addresses. The caller holds mu.
func (w *Watcher) answers(voter string) bool {
	for _, p := range w.posts {
		if p.voter() == voter && p.reachable {
			return true
		}
	}
	return false
}
