package cluster

import (
	"slices"
	"time"
)

// distrust is how long a Cluster of which no known node answers is waited for, before another one in its place is
// believed.
const distrust = 5 * time.Second

// news is what is believed of the topology: what the nodes that answered say, put together.
type news struct {
	members map[string]member // by id
	owners  [Slots]claim
	epoch   uint64
	seen    time.Time
}

// claim is the word that a node owns a slot. Epochs order claims: whoever takes a slot over does so under a higher one.
type claim struct {
	id    string // empty: nobody claims
	epoch uint64
	own   bool // it is the node's own word
}

func (c claim) beats(other claim) bool {
	switch {
	case c.id == "" || other.id == "":
		return c.id != ""
	case c.epoch != other.epoch:
		return c.epoch > other.epoch
	default:
		return c.own && !other.own
	}
}

// merge puts views together. Of a node that answered only its own word counts about what it owns; else the highest
// epoch does, so that neither a node that was cut off nor an old master back from the dead turns anybody back. For the
// same reason what was believed before stands until somebody who can know better says otherwise.
//
// It returns nil if none of the views is worth anything.
func merge(before *news, views []view, at time.Time) *news {
	if views = kin(before, views); before.strange(views, at) {
		return nil
	}
	n := &news{members: map[string]member{}, seen: at}
	own := map[string]bool{}
	for i := range views {
		own[views[i].self] = true
	}
	for i := range views {
		for _, m := range views[i].members {
			n.hear(m, own[m.id], own[m.id] && m.id == views[i].self)
		}
	}
	for slot, c := range before.owners {
		if _, known := n.members[c.id]; known && !own[c.id] && c.beats(n.owners[slot]) {
			n.owners[slot] = c
		}
	}
	return n
}

// hear takes in what a view says of a member. Speaks tells that the member has a view of its own, itself that this is
// the one.
func (n *news) hear(m member, speaks, itself bool) {
	n.epoch = max(n.epoch, m.epoch)
	known, found := n.members[m.id]
	believed := m
	if found && !itself && (speaks || m.epoch <= known.epoch) {
		believed = known
	}
	// Where a node is, others know better than itself.
	if believed.address = m.address; found && (itself || m.address == "") && known.address != "" {
		believed.address = known.address
	}
	believed.failing = m.failing || found && known.failing
	believed.names = m.names
	for _, name := range known.names {
		if !slices.Contains(believed.names, name) {
			believed.names = append(believed.names[:len(believed.names):len(believed.names)], name)
		}
	}
	n.members[m.id] = believed
	if !m.master || speaks && !itself {
		return
	}
	c := claim{id: m.id, epoch: m.epoch, own: itself}
	for _, s := range m.slots {
		for slot := int(s.first); slot <= int(s.last); slot++ {
			if c.beats(n.owners[slot]) {
				n.owners[slot] = c
			}
		}
	}
}

// kin drops the views of nodes that do not belong: those that the others have been told to forget, and those of
// another Cluster that got the address of a node that is gone.
func kin(before *news, views []view) []view {
	base, most := 0, 0
	for i := range views {
		score := 0
		for j := range views {
			if views[j].knows(views[i].self) {
				score += 2
			}
		}
		if _, familiar := before.members[views[i].self]; familiar {
			score++
		}
		if score > most {
			base, most = i, score
		}
	}
	return slices.DeleteFunc(slices.Clone(views), func(v view) bool { return !views[base].knows(v.self) })
}

// strange tells that only nodes answered which nobody has heard of. If that lasts, the Cluster was made anew; else one
// of them has lost its memory, and answered first.
func (n *news) strange(views []view, at time.Time) bool {
	familiar := slices.ContainsFunc(views, func(v view) bool { _, ok := n.members[v.self]; return ok })
	return len(n.members) > 0 && !familiar && at.Sub(n.seen) < distrust
}

// shows tells whether a node must have a shard: it owns a slot, or is about to, for a master that owns none yet may be
// taking over the first.
func (n *news) shows(m member, owns bool) bool {
	return m.address != "" && (owns || m.master && !m.failing && len(m.slots) == 0)
}
