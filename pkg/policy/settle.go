package policy

import (
	"cmp"
	"maps"
	"slices"
)

// names returns every domain that is in force, in the files, or both, in order.
func (a *assembly) names(old *Set) []string {
	all := map[string]bool{}
	for _, name := range old.Domains() {
		all[name] = true
	}
	for name := range a.domains {
		all[name] = true
	}
	for name := range a.faults {
		all[name] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// settle decides which version of a domain is in force after a load; old is nil for a new domain, the result for one
// that is not to be.
func (a *assembly) settle(name string, old *Domain) (*Domain, Outcome) {
	next := a.domains[name]
	switch {
	case len(a.faults[name]) > 0 && old == nil:
		return nil, Rejected
	case len(a.faults[name]) > 0:
		return old, Kept
	case old == nil:
		return next, Installed
	case a.hides(old, next):
		return old, Kept
	case next == nil:
		return nil, Removed
	case next.version == old.version:
		next.loadedAt = old.loadedAt
		return next, Unchanged
	default:
		return next, Installed
	}
}

// hides tells whether a file that cannot be told may hold a part of old: a part of it came from there, or next, which
// is nil if no file mentions the domain, lacks an endpoint.
func (a *assembly) hides(old, next *Domain) bool {
	if len(a.blind) == 0 {
		return false
	}
	return next == nil || slices.ContainsFunc(old.policies, func(p *Policy) bool {
		return a.blindFiles[p.File] || !next.has(p.Endpoint.ID)
	})
}

func (d *Domain) has(id string) bool {
	_, found := slices.BinarySearchFunc(d.policies, id, func(p *Policy, id string) int {
		return cmp.Compare(p.Endpoint.ID, id)
	})
	return found
}

// unread tells whether the system kept a file from being read, which may pass without the file changing.
func (a *assembly) unread() bool {
	return slices.ContainsFunc(a.blind, func(f Fault) bool { return f.Err != nil })
}

// reasons are the faults because of which a domain did not take a new version.
func (a *assembly) reasons(name string, outcome Outcome) Faults {
	if outcome != Kept && outcome != Rejected {
		return nil
	}
	if faults := a.faults[name]; len(faults) > 0 {
		return faults
	}
	return a.blind.sorted()
}
