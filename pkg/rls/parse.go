package rls

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/honestlimit/ratelimit/pkg/policy"
)

// Bounds of a request. They are generous: a request beyond them is a mistake or an attack, not a big customer.
const (
	// MaxDomain is the longest domain, in bytes.
	MaxDomain = 256
	// MaxDescriptors is the largest number of descriptors of one request.
	MaxDescriptors = 64
	// MaxEntries is the largest number of entries of one descriptor.
	MaxEntries = 16
	// MaxText is the longest key or value of an entry, in bytes.
	MaxText = 4096
)

// invalid is an INVALID_ARGUMENT that names the field at fault. What the field holds must not be in format or args,
// unless it is a number: values are identities.
func invalid(field, format string, args ...any) error {
	return status.Error(codes.InvalidArgument, field+": "+fmt.Sprintf(format, args...))
}

// parse fills p with the descriptors of an encoded RateLimitRequest. It keeps parts of text, which must not change.
func (p *plan) parse(text string) error {
	request := wire{rest: text}
	hits, descriptors := uint32(0), 0
	for request.next() {
		switch request.field {
		case requestDomain:
			p.domain = request.text
		case requestDescriptors:
			if descriptors++; descriptors <= MaxDescriptors {
				p.raw = append(p.raw, request.text)
			}
		case requestHitsAddend:
			hits = uint32(request.number)
		}
	}
	switch {
	case request.broken:
		return invalid("request", "is no envoy.service.ratelimit.v3.RateLimitRequest")
	case p.domain == "":
		return invalid("domain", "is empty, must name a configured domain")
	case len(p.domain) > MaxDomain:
		return invalid("domain", "is %d bytes long, at most %d", len(p.domain), MaxDomain)
	case descriptors == 0:
		return invalid("descriptors", "is empty, must have at least one")
	case descriptors > MaxDescriptors:
		return invalid("descriptors", "has %d, at most %d", descriptors, MaxDescriptors)
	}
	for i, raw := range p.raw {
		if err := p.parseDescriptor(i, raw, uint64(max(hits, 1))); err != nil { // the protocol reads 0 as "not set"
			return err
		}
	}
	return nil
}

func (p *plan) parseDescriptor(i int, text string, hits uint64) error {
	d := wire{rest: text}
	a := ask{first: len(p.entries), hits: hits, charge: nobody}
	entries, negative, named := 0, false, false
	var broken bool
	var o rawOverride
	for d.next() {
		switch d.field {
		case descriptorEntries:
			if entries++; entries <= MaxEntries {
				var e policy.Entry
				e, broken = parseEntry(d.text)
				p.entries = append(p.entries, e)
			}
		case descriptorLimit:
			broken = o.parse(d.text)
		case descriptorHitsAddend:
			// Here 0 is set on purpose: it asks without charging. What is repeated is merged.
			if !named {
				a.hits, named = 0, true
			}
			broken = parseNumber(d.text, &a.hits)
		case descriptorNegative:
			negative = d.number != 0
		}
		d.broken = d.broken || broken
	}
	switch {
	case d.broken:
		return invalid(fmt.Sprintf("descriptors[%d]", i), "is no RateLimitDescriptor")
	case entries > MaxEntries:
		return invalid(field(i, "entries"), "has %d, at most %d", entries, MaxEntries)
	case negative:
		return invalid(field(i, "is_negative_hits"), "is true, but refunds are not supported")
	}
	var err error
	if a.override, err = o.check(i); err != nil {
		return err
	}
	a.end = len(p.entries)
	p.asks = append(p.asks, a)
	return checkEntries(i, p.entries[a.first:a.end])
}

func parseEntry(text string) (e policy.Entry, broken bool) {
	w := wire{rest: text}
	for w.next() {
		switch w.field {
		case entryKey:
			e.Key = w.text
		case entryValue:
			e.Value = w.text
		}
	}
	return e, w.broken
}

func checkEntries(i int, entries []policy.Entry) error {
	for j := range entries {
		key, value := len(entries[j].Key), len(entries[j].Value)
		switch {
		case key == 0:
			return invalid(entryField(i, j, "key"), "is empty")
		case key > MaxText:
			return invalid(entryField(i, j, "key"), "is %d bytes long, at most %d", key, MaxText)
		case value > MaxText:
			return invalid(entryField(i, j, "value"), "is %d bytes long, at most %d", value, MaxText)
		}
	}
	return nil
}

func field(i int, name string) string { return fmt.Sprintf("descriptors[%d].%s", i, name) }

func entryField(i, j int, name string) string {
	return fmt.Sprintf("descriptors[%d].entries[%d].%s", i, j, name)
}
