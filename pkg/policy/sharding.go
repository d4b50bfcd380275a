package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// sharding is shard_by as one document gives it; the zero value is that of a document that does not.
type sharding struct {
	at    *yaml.Node   // the field's value
	keys  []string     // in the order of bytes: the order in the file has no meaning
	nodes []*yaml.Node // where the file has them, in its order
}

// sharding reads shard_by; it is zero if any key of it is faulty.
func (s section) sharding() sharding {
	const field = "shard_by"
	nodes := s.list(field, "key")
	if len(nodes) > maxEntries {
		s.w.fault(nodes[maxEntries], "%s has %d keys, want at most %d", field, len(nodes), maxEntries)
		return sharding{}
	}
	read := sharding{at: s.values[field], nodes: nodes}
	for _, n := range nodes {
		key, ok := s.w.text(n, "a key of "+field)
		switch {
		case !ok:
		case key == "" || len(key) > maxKeyLength:
			s.w.fault(n, "a key of %s has %d bytes, want from 1 to %d", field, len(key), maxKeyLength)
		case slices.Contains(read.keys, key):
			s.w.fault(n, "%s names %s twice, keep one", field, quote(key))
		default:
			read.keys = append(read.keys, key)
		}
	}
	if len(read.keys) < len(nodes) {
		return sharding{}
	}
	slices.Sort(read.keys)
	return read
}

// mergeSharding joins shard_by of the parts of one domain, of which all that give it must agree, and looks for its
// keys in their descriptors.
func mergeSharding(documents []document) (keys []string, faults Faults) {
	var first document
	known, complete := knownKeys(documents)
	for _, d := range documents {
		if d.shardBy.at == nil {
			continue
		}
		if first.shardBy.at == nil {
			first = d
		}
		if !slices.Equal(d.shardBy.keys, first.shardBy.keys) {
			text := fmt.Sprintf("shard_by is [%s], but [%s] at %s:%d: make them agree, or leave one out",
				d.shardBy, first.shardBy, first.file, first.shardBy.at.Line)
			faults = append(faults, Fault{File: d.file, Line: d.shardBy.at.Line, Column: d.shardBy.at.Column, Text: text})
		}
		for _, n := range d.shardBy.nodes {
			if complete && !known[n.Value] {
				text := fmt.Sprintf("shard_by names %s, but no descriptor of this domain has an entry with that key: %s",
					quote(n.Value), suggest(n.Value, slices.Sorted(maps.Keys(known))))
				faults = append(faults, Fault{File: d.file, Line: n.Line, Column: n.Column, Text: text})
			}
		}
	}
	return first.shardBy.keys, faults
}

// knownKeys are the keys of all descriptors. They are not complete if a descriptor is faulty.
func knownKeys(documents []document) (known map[string]bool, complete bool) {
	known, complete = map[string]bool{}, true
	for _, d := range documents {
		for _, declared := range d.policies {
			complete = complete && declared.pattern != nil
			for _, m := range declared.pattern {
				known[m.key] = true
			}
		}
	}
	return known, complete && len(known) > 0
}

// String lists the keys.
func (s sharding) String() string { return clip(strings.Join(s.keys, ", ")) }

// shard returns the place of the first entry of each key, in their order, or tells why the values of these entries
// cannot choose the slot: it must be one slot for all descriptors that charge one bucket.
func (p Pattern) shard(keys []string) (places []int, apart string) {
	for _, key := range keys {
		i := slices.IndexFunc(p, func(m Matcher) bool { return m.key == key })
		if i < 0 {
			return nil, fmt.Sprintf("its descriptor has no entry %s", quote(key))
		}
		if p[i].shared {
			return nil, fmt.Sprintf("all values of its entry %s share one bucket", quote(key))
		}
		places = append(places, i)
	}
	return places, ""
}
