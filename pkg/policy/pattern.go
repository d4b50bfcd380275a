package policy

import "strings"

// Pattern is the descriptor of a policy. It matches a request's descriptor that has as many entries, with the same
// keys in the same order, each with a value that the Matcher at its position accepts.
type Pattern []Matcher

// String shows the entries in order, as in "endpoint_id=resumint.tailor, tenant=*".
func (p Pattern) String() string {
	entries := make([]string, len(p))
	for i, m := range p {
		entries[i] = m.String()
	}
	return strings.Join(entries, ", ")
}

// compare is negative if p is more specific than o. Patterns that can match one descriptor have the same keys, so
// the first entry whose values differ decides.
func (p Pattern) compare(o Pattern) int {
	for i := range min(len(p), len(o)) {
		if c := p[i].compare(o[i]); c != 0 {
			return c
		}
	}
	return len(p) - len(o)
}

// identity is equal for patterns that match the same descriptors, and for no others.
func (p Pattern) identity() string {
	var id []byte
	for _, m := range p {
		id = appendText(append(id, byte(m.kind)), m.key)
		id = appendText(id, m.text)
	}
	return string(id)
}
