package policy

import (
	"cmp"
	"strconv"
	"strings"
	"unicode"
)

// kind says how a Matcher looks at a value. The order is that of specificity.
type kind uint8

const (
	exact kind = 1 + iota
	globbed
	anything
)

// String names the kind for people.
func (k kind) String() string {
	switch k {
	case exact:
		return "an exact value"
	case globbed:
		return "a glob"
	case anything:
		return "any value"
	default:
		return "kind(" + strconv.Itoa(int(k)) + ")"
	}
}

// Matcher says which entries a pattern accepts at one position.
type Matcher struct {
	key    string
	kind   kind
	text   string // the literal value, or the canonical text of the glob
	glob   glob
	shared bool
}

// newMatcher compiles the value of an entry as a file gives it.
func newMatcher(key, value string) (Matcher, error) {
	parts, err := split(value)
	if err != nil {
		return Matcher{}, err
	}
	last := len(parts) - 1
	if last == 0 {
		return Matcher{key: key, kind: exact, text: parts[0]}, nil
	}
	if last == 1 && parts[0] == "" && parts[1] == "" {
		return Matcher{key: key, kind: anything}, nil
	}
	g := glob{prefix: parts[0], middle: parts[1:last], suffix: parts[last]}
	return Matcher{key: key, kind: globbed, text: g.String(), glob: g}, nil
}

// Key is the key that an entry must have.
func (m Matcher) Key() string { return m.key }

// Shared tells whether all values that m accepts charge one bucket.
func (m Matcher) Shared() bool { return m.shared }

// String shows m as key=value, where a bare star is a wildcard.
func (m Matcher) String() string {
	text := m.key + "=" + m.value()
	if m.shared {
		text += " (shared)"
	}
	return text
}

// value shows what m accepts; text that could be mistaken for something else is quoted.
func (m Matcher) value() string {
	text := m.text
	switch m.kind {
	case anything:
		return "*"
	case exact:
		text = escape(text)
	case globbed:
	}
	if text == "" || strings.ContainsFunc(text, misleading) {
		return strconv.Quote(text)
	}
	return text
}

func misleading(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(` ,="`, r) }

// variable tells whether the value of the entry is part of the bucket's key.
func (m Matcher) variable() bool { return m.kind != exact && !m.shared }

func (m Matcher) accepts(value string) bool {
	switch m.kind {
	case exact:
		return m.text == value
	case globbed:
		return m.glob.matches(value)
	case anything:
	}
	return true
}

// compare is negative if m is more specific than o: exact, then glob by rank and text, then any value.
func (m Matcher) compare(o Matcher) int {
	return cmp.Or(
		cmp.Compare(m.kind, o.kind),
		m.glob.rank().compare(o.glob.rank()),
		cmp.Compare(m.text, o.text),
	)
}
