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

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

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

	variable []int  // the entries of Pattern whose values tell buckets apart
	hashed   []byte // the encoding of the domain, with which every hashed text begins
	suffix   string // what follows the hash in a bucket key
	fixed    string // the bucket key of a policy without variable entries
}

// compile prepares what BucketKey needs.
func (p *Policy) compile() {
	for i, m := range p.Pattern {
		if m.variable() {
			p.variable = append(p.variable, i)
		}
	}
	p.hashed = appendText(nil, p.Endpoint.Domain)
	p.suffix = "}:" + p.Endpoint.ID + ":" + strconv.FormatUint(uint64(p.Version), 10)
	if len(p.variable) == 0 {
		p.fixed = p.key(sha256.Sum256(p.hashed))
	}
}

// Cost returns what a request of hits tokens is charged: hits, raised to MinCost. It is not ok above MaxCost: such a
// request is denied, and no waiting helps.
func (p *Policy) Cost(hits uint64) (cost int64, ok bool) {
	if hits > uint64(p.MaxCost) {
		return 0, false
	}
	return max(int64(hits), p.MinCost), true
}

const (
	keyPrefix = "rl:v1:{"
	hashBytes = 16
	hashChars = (hashBytes*8 + 5) / 6
)

// BucketKey names the bucket that a descriptor, which must be one that Match found p for, charges:
//
//	rl:v1:{<hash>}:<endpoint_id>:<policy_version>
//
// The hash is the base64 form of the first 16 bytes of a SHA-256 over the domain and the key and value of every
// variable entry, each preceded by its length. So no two joins collide, no raw identity reaches the store, and in a
// Redis Cluster the buckets of one identity share a slot.
func (p *Policy) BucketKey(descriptor []Entry) string {
	if p.fixed != "" {
		return p.fixed
	}
	size := len(p.hashed)
	for _, i := range p.variable {
		size += encodedSize(descriptor[i].Key) + encodedSize(descriptor[i].Value)
	}
	var stack [512]byte
	if size > len(stack) {
		return p.key(p.digest(descriptor))
	}
	text := append(stack[:0], p.hashed...)
	for _, i := range p.variable {
		text = appendText(appendText(text, descriptor[i].Key), descriptor[i].Value)
	}
	return p.key(sha256.Sum256(text))
}

// digest hashes what does not fit on the stack, chunk by chunk: it is a fifth slower, but allocates nothing either.
func (p *Policy) digest(descriptor []Entry) (sum [sha256.Size]byte) {
	hash := sha256.New()
	hash.Write(p.hashed)
	var chunk [512]byte
	for _, i := range p.variable {
		for _, text := range [...]string{descriptor[i].Key, descriptor[i].Value} {
			hash.Write(binary.BigEndian.AppendUint64(chunk[:0], uint64(len(text))))
			for len(text) > 0 {
				n := copy(chunk[:], text)
				hash.Write(chunk[:n])
				text = text[n:]
			}
		}
	}
	hash.Sum(sum[:0])
	return sum
}

// key puts the key together; the string is its only allocation.
func (p *Policy) key(sum [sha256.Size]byte) string {
	var stack [len(keyPrefix) + hashChars + maxIDLength + 16]byte
	key := append(stack[:0], keyPrefix...)
	key = base64.RawURLEncoding.AppendEncode(key, sum[:hashBytes])
	return string(append(key, p.suffix...))
}

// appendText appends s with its length, so that a sequence of texts is encoded without ambiguity.
func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...)
}

func encodedSize(s string) int { return 8 + len(s) }
