package policy

import (
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

// Bounds of what a file may say, besides those of package limit.
const (
	// maxEntries is the largest number of entries of a descriptor.
	maxEntries = 16

	maxIDLength     = 128
	maxDomainLength = 256
	maxKeyLength    = 256
	maxValueLength  = 4096
)

// document is one YAML document: one domain, or a part of one.
type document struct {
	file     string
	domain   string // "" when the document does not tell
	shardBy  sharding
	policies []declaration
	faults   Faults
}

// declaration is one policy as a document states it. What it states wrongly is zero, and policy is nil then; the
// rest still takes part in the search for duplicates, so that all faults are found at once.
type declaration struct {
	policy     *Policy
	id         string
	idAt       *yaml.Node
	pattern    Pattern
	descriptor *yaml.Node
}

// The fields of each mapping, in the order in which messages list them.
var (
	documentFields = []string{"domain", "shard_by", "policies"}
	policyFields   = []string{
		"endpoint_id", "descriptor", "token_bucket", "sliding_window", "fail_mode", "fallback_rate_per_process",
		"fallback_rate_per_process_micro", "policy_version", "min_cost", "max_cost",
	}
	entryFields         = []string{"key", "value", "shared"}
	tokenBucketFields   = []string{"rate", "burst", "refill_rate_micro_per_sec", "capacity_micro"}
	slidingWindowFields = []string{"limit", "window", "window_size_micro"}
)

// readDocument reads what root, the content of one YAML document, declares.
func readDocument(file string, root *yaml.Node) document {
	w := &walker{file: file}
	d := document{file: file}
	if s, ok := w.section(root, "a policy file", documentFields...); ok {
		s.require("domain", "the name by which Envoy's filter asks")
		s.require("policies", "a list of at least one policy")
		d.domain = s.domain()
		d.shardBy = s.sharding()
		for _, n := range s.list("policies", "policy") {
			d.policies = append(d.policies, w.declaration(n, d.domain))
		}
	}
	d.faults = w.result()
	return d
}

func (s section) domain() string {
	name, ok := s.text("domain")
	if ok && (name == "" || len(name) > maxDomainLength) {
		s.w.fault(s.values["domain"], "domain has %d bytes, want from 1 to %d", len(name), maxDomainLength)
		return ""
	}
	return name
}

// declaration reads one policy.
func (w *walker) declaration(n *yaml.Node, domain string) declaration {
	before := len(w.faults) + w.more
	s, ok := w.section(n, "a policy", policyFields...)
	if !ok {
		return declaration{}
	}
	d := declaration{idAt: s.values["endpoint_id"], descriptor: s.keys["descriptor"]}
	d.id = s.endpointID()
	d.pattern = s.pattern()
	p := &Policy{
		Endpoint: limit.Endpoint{Domain: domain, ID: d.id},
		Limit:    s.limit(),
		Version:  s.version(),
		Pattern:  d.pattern,
		File:     w.file,
		Line:     n.Line,
	}
	p.Endpoint.FailMode, p.Endpoint.Fallback = s.failMode()
	p.MinCost, p.MaxCost = s.costs(p.Limit)
	if len(w.faults)+w.more == before && domain != "" {
		d.policy = p
	}
	return d
}

var idForm = regexp.MustCompile(`^[a-z0-9._-]+$`)

func (s section) endpointID() string {
	s.require("endpoint_id", "a name for keys and metrics, made of a-z, 0-9, dot, underscore and hyphen")
	id, ok := s.text("endpoint_id")
	switch {
	case !ok:
		return ""
	case !idForm.MatchString(id):
		s.w.fault(s.values["endpoint_id"], "endpoint_id is %s, want only a-z, 0-9, dot, underscore and hyphen", quote(id))
		return ""
	case len(id) > maxIDLength:
		s.w.fault(s.values["endpoint_id"], "endpoint_id has %d bytes, want at most %d", len(id), maxIDLength)
		return ""
	default:
		return id
	}
}

// pattern reads the descriptor; it is nil if any entry of it is faulty.
func (s section) pattern() Pattern {
	s.require("descriptor", "the entries, in order, of the descriptors that it governs")
	entries := s.list("descriptor", "entry")
	if len(entries) > maxEntries {
		s.w.fault(entries[maxEntries], "descriptor has %d entries, want at most %d", len(entries), maxEntries)
		return nil
	}
	var p Pattern
	for _, n := range entries {
		if m, ok := s.w.matcher(n); ok {
			p = append(p, m)
		}
	}
	if len(p) < len(entries) {
		return nil
	}
	return p
}

func (w *walker) matcher(n *yaml.Node) (Matcher, bool) {
	before := len(w.faults) + w.more
	s, ok := w.section(n, "an entry", entryFields...)
	if !ok {
		return Matcher{}, false
	}
	s.require("key", "the key of the request's entry")
	key, ok := s.text("key")
	if ok && (key == "" || len(key) > maxKeyLength) {
		w.fault(s.values["key"], "key has %d bytes, want from 1 to %d", len(key), maxKeyLength)
	}
	m := s.valueMatcher(key)
	m.shared = s.flag("shared")
	if m.shared && m.kind == exact {
		w.fault(s.keys["shared"], "shared needs a wildcard, all of whose values share one bucket: leave it out")
	}
	return m, len(w.faults)+w.more == before
}

// valueMatcher reads the value of an entry: none is any value.
func (s section) valueMatcher(key string) Matcher {
	n := s.values["value"]
	if n == nil {
		return Matcher{key: key, kind: anything}
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		s.w.fault(n, `value is nothing: leave the key out for any value, or write "" for the empty one`)
		return Matcher{}
	}
	text, ok := s.text("value")
	if !ok {
		return Matcher{}
	}
	if len(text) > maxValueLength {
		s.w.fault(n, "value has %d bytes, want at most %d", len(text), maxValueLength)
		return Matcher{}
	}
	m, err := newMatcher(key, text)
	if err != nil {
		s.w.fault(n, "value is %s: %v", quote(text), err)
	}
	return m
}

func (s section) version() uint32 {
	if !s.has("policy_version") {
		return 1
	}
	v, _ := s.integer("policy_version", 1, 1<<32-1)
	return uint32(v)
}
