package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"
)

// Domain holds the policies of one domain. It is immutable.
type Domain struct {
	name     string
	version  string
	loadedAt time.Time
	shardBy  []string
	policies []*Policy // by endpoint id
	root     node
}

// newDomain compiles policies whose ids and patterns are distinct, and which it takes over.
func newDomain(name string, shardBy []string, policies []*Policy, now time.Time) *Domain {
	d := &Domain{name: name, loadedAt: now, shardBy: shardBy, policies: slices.Clone(policies)}
	slices.SortFunc(d.policies, func(a, b *Policy) int { return cmp.Compare(a.Endpoint.ID, b.Endpoint.ID) })
	for _, p := range d.policies {
		p.name(shardBy)
		d.root.insert(p)
	}
	d.version = d.fingerprint()
	return d
}

// Name is the name by which requests ask for the domain.
func (d *Domain) Name() string { return d.name }

// Version is a hash of what the policies say, wherever and however it is written: equal versions enforce the same.
func (d *Domain) Version() string { return d.version }

// LoadedAt is when this version came into force.
func (d *Domain) LoadedAt() time.Time { return d.loadedAt }

// Policies returns the policies in the order of their endpoint ids.
func (d *Domain) Policies() []*Policy { return slices.Clone(d.policies) }

// ShardBy returns the keys of the entries whose values choose the slot of a bucket in a Redis Cluster, in the order of
// bytes; none if every identity has a slot of its own.
func (d *Domain) ShardBy() []string { return slices.Clone(d.shardBy) }

// Match returns the most specific policy for a descriptor, nil if none governs it. A policy matches if its pattern
// has as many entries, with the same keys in the same order, and accepts every value. Among those that match, the
// first entry at which they differ decides: an exact value wins over a glob, the glob with the longer literal prefix
// over the shorter, any glob over no value. The order of the files has no influence. Match allocates nothing.
func (d *Domain) Match(descriptor []Entry) *Policy { return d.root.match(descriptor) }

// fingerprint hashes every field that matters to a decision.
func (d *Domain) fingerprint() string {
	text := appendText(nil, d.name)
	for _, p := range d.policies {
		text = appendText(text, p.Endpoint.ID)
		text = appendText(text, p.Pattern.identity())
		for _, m := range p.Pattern {
			text = append(text, '0')
			if m.shared {
				text[len(text)-1] = '1'
			}
		}
		for _, n := range [...]int64{
			int64(p.Limit.Algorithm), p.Limit.Capacity, p.Limit.Refill, p.Limit.Period, int64(p.Version),
			int64(p.Endpoint.FailMode), p.Endpoint.Fallback.Micro, p.Endpoint.Fallback.Period, p.MinCost, p.MaxCost,
		} {
			text = binary.BigEndian.AppendUint64(text, uint64(n))
		}
	}
	if len(d.shardBy) > 0 {
		text = appendText(text, "") // which is no endpoint id, so that what follows is no policy
		for _, key := range d.shardBy {
			text = appendText(text, key)
		}
	}
	return shortHash(text)
}

// shortHash is long enough to tell versions apart at a glance; nothing relies on it against an adversary.
func shortHash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}
