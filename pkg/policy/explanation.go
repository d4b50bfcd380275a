package policy

import (
	"cmp"
	"fmt"
	"slices"
)

// maxMisses bounds an Explanation to the policies that come closest.
const maxMisses = 20

// Explanation tells a person why a descriptor is governed by one policy and not by the others.
type Explanation struct {
	// Policy is what Match returns, nil for none.
	Policy *Policy
	// Misses are other policies of the domain, the nearest first.
	Misses []Miss
	// Omitted is the number of policies that are further away than those in Misses.
	Omitted int
}

// Miss tells why one policy does not govern a descriptor.
type Miss struct {
	Policy *Policy
	Reason MissReason
	// Entry is the position, from 0, of the entry that decides; the number of entries compared for EntryCount.
	Entry int
	// winner is the policy that Policy loses to when Reason is LessSpecific.
	winner *Policy
}

// MissReason says which rule keeps a policy from governing a descriptor.
type MissReason uint8

// The reasons, from the nearest miss to the furthest.
const (
	// LessSpecific matches too, but another policy is more specific.
	LessSpecific MissReason = 1 + iota
	// OtherValue has another value at an entry.
	OtherValue
	// OtherKey has another key at an entry.
	OtherKey
	// EntryCount agrees as far as both go, but one has more entries.
	EntryCount
)

// String names the reason as a word.
func (r MissReason) String() string {
	switch r {
	case LessSpecific:
		return "less_specific"
	case OtherValue:
		return "other_value"
	case OtherKey:
		return "other_key"
	case EntryCount:
		return "entry_count"
	default:
		return fmt.Sprintf("miss_reason(%d)", uint8(r))
	}
}

// String explains the miss in words from the policy, none from the request.
func (m Miss) String() string {
	switch m.Reason {
	case LessSpecific:
		own, better := m.Policy.Pattern[m.Entry], m.winner.Pattern[m.Entry]
		return fmt.Sprintf("matches, but entry %d is less specific: %s, where %s has %s",
			m.Entry+1, own, m.winner.Endpoint.ID, better)
	case OtherValue:
		return fmt.Sprintf("entry %d must be %s", m.Entry+1, m.Policy.Pattern[m.Entry])
	case OtherKey:
		return fmt.Sprintf("entry %d must have the key %q", m.Entry+1, m.Policy.Pattern[m.Entry].key)
	case EntryCount:
		return fmt.Sprintf("wants a descriptor of length %d", len(m.Policy.Pattern))
	default:
		return m.Reason.String()
	}
}

// Explain tells which policy governs a descriptor and why the others do not. It looks at every policy of the domain,
// so it is for people, not for requests.
func (d *Domain) Explain(descriptor []Entry) Explanation {
	e := Explanation{Policy: d.Match(descriptor)}
	for _, p := range d.policies {
		if p != e.Policy {
			e.Misses = append(e.Misses, miss(p, e.Policy, descriptor))
		}
	}
	slices.SortStableFunc(e.Misses, func(a, b Miss) int {
		if a.Reason == LessSpecific && b.Reason == LessSpecific {
			return a.Policy.Pattern.compare(b.Policy.Pattern)
		}
		return cmp.Or(
			cmp.Compare(min(a.Reason, OtherValue), min(b.Reason, OtherValue)),
			cmp.Compare(b.Entry, a.Entry),
			cmp.Compare(a.Reason, b.Reason),
		)
	})
	if over := len(e.Misses) - maxMisses; over > 0 {
		e.Misses, e.Omitted = e.Misses[:maxMisses], over
	}
	return e
}

// miss finds the first reason why p does not govern a descriptor that winner, if any, does.
func miss(p, winner *Policy, descriptor []Entry) Miss {
	for i := range min(len(p.Pattern), len(descriptor)) {
		if p.Pattern[i].key != descriptor[i].Key {
			return Miss{Policy: p, Reason: OtherKey, Entry: i}
		}
		if !p.Pattern[i].accepts(descriptor[i].Value) {
			return Miss{Policy: p, Reason: OtherValue, Entry: i}
		}
	}
	if len(p.Pattern) != len(descriptor) {
		return Miss{Policy: p, Reason: EntryCount, Entry: min(len(p.Pattern), len(descriptor))}
	}
	for i := range p.Pattern {
		if p.Pattern[i].compare(winner.Pattern[i]) != 0 {
			return Miss{Policy: p, Reason: LessSpecific, Entry: i, winner: winner}
		}
	}
	panic("policy: two policies with one pattern")
}
