// Package policy tells which policy governs a descriptor.
//
// It reads policy files strictly, compiles them into an immutable Set, finds the most specific policy for a request's
// descriptor and names the bucket to charge. A Source keeps the Set of a file or directory current: it reloads on
// change, all of a domain or nothing, and keeps the last good version of a domain whose files are faulty.
//
// The package knows no store, no Envoy and no metrics; it never sees a request other than as entries. Zero values are
// of no use unless they say otherwise. Set, Domain and Policy are immutable and Source is safe for concurrent use.
//
// The grammar of a file is in README.md beside this file; matching and bucket keys are explained at Domain.Match and
// Policy.BucketKey.
package policy

import "github.com/honestlimit/ratelimit/pkg/limit"

// Policy is one compiled policy. It is shared by all requests: treat its fields as read-only.
type Policy struct {
	// Endpoint is whom the policy protects, and what becomes of its requests while the store is away.
	Endpoint limit.Endpoint
	// Limit is what each bucket of the policy is held to.
	Limit limit.Limit
	// Version is policy_version, at least 1: raising it starts new, full buckets.
	Version uint32
	// MinCost and MaxCost bound what one request is charged, in tokens: 0 <= MinCost <= MaxCost, and
	// 1 <= MaxCost <= Limit.Tokens().
	MinCost, MaxCost int64
	// Pattern says which descriptors the policy governs.
	Pattern Pattern
	// File and Line tell where the policy begins.
	File string
	Line int

	naming naming
	apart  string
}

// Cost returns what a request of hits tokens is charged: hits, raised to MinCost. It is not ok above MaxCost: such a
// request is denied, and no waiting helps.
func (p *Policy) Cost(hits uint64) (cost int64, ok bool) {
	if hits > uint64(p.MaxCost) {
		return 0, false
	}
	return max(int64(hits), p.MinCost), true
}

// Apart tells why shard_by of the domain does not choose the slot of p's buckets, which therefore need not be that of
// the other buckets of a request; "" if it does, or if the domain has no shard_by.
func (p *Policy) Apart() string { return p.apart }
