package policy

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFaults bounds what is reported of one document; a file that is not a policy file at all would fill the screen.
const maxFaults = 100

// walker goes through the nodes of one document and collects what is wrong with them.
type walker struct {
	file   string
	faults Faults
	more   int // faults beyond maxFaults
}

func (w *walker) fault(at *yaml.Node, format string, args ...any) {
	if len(w.faults) == maxFaults {
		w.more++
		return
	}
	text := fmt.Sprintf(format, args...)
	w.faults = append(w.faults, Fault{File: w.file, Line: at.Line, Column: at.Column, Text: text})
}

// result returns what was collected, in order.
func (w *walker) result() Faults {
	faults := w.faults.sorted()
	if w.more > 0 {
		last := faults[len(faults)-1]
		last.Text = fmt.Sprintf("and %d more faults", w.more)
		faults = append(faults, last)
	}
	return faults
}

// section is one mapping of a document, with the fields that it may have. Its readers report a value of the wrong
// type or out of range; they return ok only for a value that is there and right.
type section struct {
	w      *walker
	node   *yaml.Node
	name   string // for people: "a policy"
	known  []string
	keys   map[string]*yaml.Node
	values map[string]*yaml.Node
}

// section reads n as a mapping. What is not a mapping is reported, and has no fields.
func (w *walker) section(n *yaml.Node, name string, known ...string) (s section, ok bool) {
	s = section{w: w, node: n, name: name, known: known}
	s.keys, s.values = map[string]*yaml.Node{}, map[string]*yaml.Node{}
	if n.Kind != yaml.MappingNode {
		w.fault(n, "%s is %s, want a mapping with %s", name, describe(n), strings.Join(known, ", "))
		return s, false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		s.add(n.Content[i], n.Content[i+1])
	}
	return s, true
}

func (s section) add(key, value *yaml.Node) {
	name := key.Value
	switch {
	case key.Kind != yaml.ScalarNode:
		s.w.fault(key, "%s has %s as a key, want one of %s", s.name, describe(key), strings.Join(s.known, ", "))
	case name == "<<" && key.Style == 0:
		s.w.fault(key, "merge keys are not accepted: write the fields out")
	case !slices.Contains(s.known, name):
		s.w.fault(key, "unknown key %s in %s: %s", quote(name), s.name, suggest(name, s.known))
	case s.keys[name] != nil:
		s.w.fault(key, "duplicate key %q: it is also on line %d, keep one", name, s.keys[name].Line)
	default:
		s.keys[name], s.values[name] = key, value
	}
}

func (s section) has(key string) bool { return s.keys[key] != nil }

// require reports that key is missing; why completes "a policy needs fail_mode: ...".
func (s section) require(key, why string) bool {
	if !s.has(key) {
		s.w.fault(s.node, "%s needs %s: %s", s.name, key, why)
	}
	return s.has(key)
}

// choose returns which of two keys that exclude each other is there, "" if neither is. Both are a fault, reported at
// the later one with the reason why.
func (s section) choose(a, b, why string) string {
	switch {
	case s.has(a) && s.has(b):
		later := s.keys[a]
		if after(s.keys[b], later) {
			later = s.keys[b]
		}
		s.w.fault(later, "%s has both %s and %s: %s", s.name, a, b, why)
		return ""
	case s.has(a):
		return a
	case s.has(b):
		return b
	default:
		return ""
	}
}

func after(a, b *yaml.Node) bool {
	return a.Line > b.Line || a.Line == b.Line && a.Column > b.Column
}

// text reads a string.
func (s section) text(key string) (string, bool) {
	n := s.values[key]
	if n == nil {
		return "", false
	}
	return s.w.text(n, key)
}

// text reads n, which name is for people, as a string. A number or a date without quotes is refused: YAML may not mean
// what its author reads.
func (w *walker) text(n *yaml.Node, name string) (string, bool) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		return n.Value, true
	}
	if n.Kind == yaml.ScalarNode && n.Value != "" && n.Style&yaml.TaggedStyle == 0 {
		w.fault(n, "%s is %s, want text: put it in quotes, %q", name, describe(n), clip(n.Value))
		return "", false
	}
	w.fault(n, "%s is %s, want text", name, describe(n))
	return "", false
}

// integer reads a whole number from low to high.
func (s section) integer(key string, low, high int64) (int64, bool) {
	n := s.values[key]
	if n == nil {
		return 0, false
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" && !isDigits(n) {
		s.w.fault(n, "%s is %s, want a whole number from %d to %d", key, describe(n), low, high)
		return 0, false
	}
	if len(n.Value) > 1 && n.Value[0] == '0' && n.Value[1] >= '0' && n.Value[1] <= '9' {
		s.w.fault(n, "%s is %s, which YAML reads as octal: leave the leading zero out", key, clip(n.Value))
		return 0, false
	}
	var v int64
	if err := n.Decode(&v); err != nil || v < low || v > high {
		s.w.fault(n, "%s is %s, want from %d to %d", key, clip(n.Value), low, high)
		return 0, false
	}
	return v, true
}

// isDigits tells a number too large for YAML's integers, which is out of range, from a fraction, which is of the
// wrong type.
func isDigits(n *yaml.Node) bool {
	return n.ShortTag() == "!!float" && strings.Trim(n.Value, "-+_0123456789") == ""
}

// flag reads true or false; a missing flag is false.
func (s section) flag(key string) bool {
	n := s.values[key]
	if n == nil {
		return false
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Value != "true" && n.Value != "false" {
		s.w.fault(n, "%s is %s, want true or false", key, describe(n))
	}
	return n.Value == "true"
}

// list reads a list that is not empty.
func (s section) list(key, of string) []*yaml.Node {
	n := s.values[key]
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		s.w.fault(n, "%s is %s, want a list of at least one %s", key, describe(n), of)
		return nil
	}
	return n.Content
}

// describe names a node for people. It never shows more than the beginning of a value.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		if len(n.Content) == 0 {
			return "an empty list"
		}
		return "a list"
	case yaml.AliasNode:
		return "an alias, which is not accepted"
	case yaml.ScalarNode, yaml.DocumentNode:
	}
	switch tag := n.ShortTag(); tag {
	case "!!str":
		return "the text " + quote(n.Value)
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "the number " + clip(n.Value)
	case "!!bool", "!!timestamp":
		return clip(n.Value)
	default:
		return "a value with the tag " + clip(tag)
	}
}
