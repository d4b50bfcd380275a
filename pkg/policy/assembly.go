package policy

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// assembly is what a number of files amount to: the domains without any fault, and the faults of the others.
type assembly struct {
	domains map[string]*Domain
	faults  map[string]Faults // by domain
	// blind are the faults that hide what a file says, and of which domain; blindFiles are the files.
	blind      Faults
	blindFiles map[string]bool
	// seen is what the files looked like, unless they could not be read at one moment.
	seen snapshot
}

// assemble puts the domains together. Files must be in the order in which faults shall see them.
func assemble(files []file, now time.Time) assembly {
	a := assembly{domains: map[string]*Domain{}, faults: map[string]Faults{}, blindFiles: map[string]bool{}}
	parts := map[string][]document{}
	for _, f := range files {
		a.addBlind(f.blind)
		for _, d := range f.documents {
			parts[d.domain] = append(parts[d.domain], d)
		}
	}
	for name, documents := range parts {
		policies, faults := merge(documents)
		shardBy, more := mergeSharding(documents)
		if faults = append(faults, more...); len(faults) > 0 {
			a.faults[name] = faults.sorted()
			continue
		}
		a.domains[name] = newDomain(name, shardBy, policies, now)
	}
	return a
}

func (a *assembly) addBlind(faults Faults) {
	a.blind = append(a.blind, faults...)
	for _, f := range faults {
		a.blindFiles[f.File] = true
	}
}

// all returns every fault in the order of positions.
func (a *assembly) all() Faults {
	all := append(Faults(nil), a.blind...)
	for _, faults := range a.faults {
		all = append(all, faults...)
	}
	return all.sorted()
}

// set returns the Set, if there is no fault at all.
func (a assembly) set() (*Set, error) {
	if err := a.all().err(); err != nil {
		return nil, err
	}
	return newSet(a.domains), nil
}

// merge joins the parts of one domain, and finds what no part can find alone.
func merge(documents []document) (policies []*Policy, faults Faults) {
	ids, patterns := seen{}, seen{}
	for _, d := range documents {
		faults = append(faults, d.faults...)
		for _, declared := range d.policies {
			faults = append(faults, duplicates(d.file, declared, ids, patterns)...)
			if declared.policy != nil {
				policies = append(policies, declared.policy)
			}
		}
	}
	return policies, faults
}

// seen holds where an id or a pattern was first declared.
type seen map[string]place

type place struct {
	file, id string
	node     *yaml.Node
}

// first enters the key, and returns the earlier place if there is one.
func (s seen) first(key string, here place) (earlier place, found bool) {
	if earlier, found = s[key]; !found {
		s[key] = here
	}
	return earlier, found
}

func duplicates(file string, d declaration, ids, patterns seen) (faults Faults) {
	report := func(at *yaml.Node, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		faults = append(faults, Fault{File: file, Line: at.Line, Column: at.Column, Text: text})
	}
	if d.id != "" {
		if e, found := ids.first(d.id, place{file, d.id, d.idAt}); found {
			report(d.idAt, "duplicate endpoint_id %q in this domain: it is also at %s:%d, rename one",
				d.id, e.file, e.node.Line)
		}
	}
	if d.pattern != nil {
		here := place{file, d.id, d.descriptor}
		if e, found := patterns.first(d.pattern.identity(), here); found {
			report(d.descriptor, "no request can reach this policy: %q at %s:%d has the same descriptor, "+
				"remove or change one", e.id, e.file, e.node.Line)
		}
	}
	return faults
}
