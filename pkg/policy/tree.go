package policy

import (
	"cmp"
	"slices"
)

// node is a place in the tree of a domain's patterns: the entries on the way to it have been matched. Lookups cost
// one map access per entry and per distinct form of glob, not per policy; only globs with both the same literal
// prefix and the same literal suffix are tried one after the other. Nodes are immutable once their domain is built.
type node struct {
	policy   *Policy            // of the pattern that ends here, nil if none does
	branches map[string]*branch // by the key of the next entry
}

// branch holds the values that patterns accept for one key, and what follows each of them.
type branch struct {
	exact  map[string]*node
	levels []level
	any    *node
}

// level holds the globs of one rank. Levels are ordered from the most specific.
type level struct {
	rank  rank
	globs map[ends][]alternative
}

// ends are the literal texts at both ends of a glob.
type ends struct{ prefix, suffix string }

// alternative is a glob and what follows it; alternatives are ordered by text.
type alternative struct {
	text string
	glob glob
	next *node
}

// match returns the most specific policy for the rest of a descriptor. Every node has one parent, so the way back
// out of a dead end visits no node twice.
func (n *node) match(rest []Entry) *Policy {
	if len(rest) == 0 {
		return n.policy
	}
	b := n.branches[rest[0].Key]
	if b == nil {
		return nil
	}
	if next := b.exact[rest[0].Value]; next != nil {
		if p := next.match(rest[1:]); p != nil {
			return p
		}
	}
	for i := range b.levels {
		if p := b.levels[i].match(rest); p != nil {
			return p
		}
	}
	if b.any != nil {
		return b.any.match(rest[1:])
	}
	return nil
}

func (l *level) match(rest []Entry) *Policy {
	value := rest[0].Value
	left, right := l.rank.prefix, len(value)-l.rank.suffix
	if left > right {
		return nil
	}
	for _, a := range l.globs[ends{value[:left], value[right:]}] {
		if !a.glob.matchesMiddle(value[left:right]) {
			continue
		}
		if p := a.next.match(rest[1:]); p != nil {
			return p
		}
	}
	return nil
}

// insert puts p where its pattern ends.
func (n *node) insert(p *Policy) {
	for _, m := range p.Pattern {
		if n.branches == nil {
			n.branches = map[string]*branch{}
		}
		b := n.branches[m.key]
		if b == nil {
			b = &branch{}
			n.branches[m.key] = b
		}
		n = b.child(m)
	}
	n.policy = p
}

// child returns the node behind m, and makes it at need.
func (b *branch) child(m Matcher) *node {
	switch m.kind {
	case exact:
		if b.exact == nil {
			b.exact = map[string]*node{}
		}
		if b.exact[m.text] == nil {
			b.exact[m.text] = &node{}
		}
		return b.exact[m.text]
	case globbed:
		return b.level(m.glob.rank()).child(m)
	case anything:
	}
	if b.any == nil {
		b.any = &node{}
	}
	return b.any
}

func (b *branch) level(r rank) *level {
	i, found := slices.BinarySearchFunc(b.levels, r, func(l level, r rank) int { return l.rank.compare(r) })
	if !found {
		b.levels = slices.Insert(b.levels, i, level{rank: r, globs: map[ends][]alternative{}})
	}
	return &b.levels[i]
}

func (l *level) child(m Matcher) *node {
	at := ends{m.glob.prefix, m.glob.suffix}
	i, found := slices.BinarySearchFunc(l.globs[at], m.text, func(a alternative, text string) int {
		return cmp.Compare(a.text, text)
	})
	if !found {
		l.globs[at] = slices.Insert(l.globs[at], i, alternative{text: m.text, glob: m.glob, next: &node{}})
	}
	return l.globs[at][i].next
}
