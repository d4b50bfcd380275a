package policy

import (
	"maps"
	"slices"
	"time"
)

// Set is a snapshot of all domains. It is immutable; the zero value has no domain.
type Set struct {
	domains map[string]*Domain
	version string
}

// Parse compiles the content of one policy file; name is what faults call it. The error is of type Faults.
func Parse(name string, content []byte) (*Set, error) {
	return assemble([]file{readFile(name, content)}, time.Now()).set()
}

// newSet takes domains over.
func newSet(domains map[string]*Domain) *Set {
	s := &Set{domains: domains}
	var text []byte
	for _, name := range s.Domains() {
		text = appendText(appendText(text, name), domains[name].version)
	}
	s.version = shortHash(text)
	return s
}

// Domain returns the domain of that name, nil if it is not configured.
func (s *Set) Domain(name string) *Domain { return s.domains[name] }

// Domains returns the names of all domains in order.
func (s *Set) Domains() []string { return slices.Sorted(maps.Keys(s.domains)) }

// Version is a hash of what all policies say. It does not depend on the names, the number or the order of files.
func (s *Set) Version() string { return s.version }
