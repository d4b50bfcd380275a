package policy

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strconv"
)

const (
	keyPrefix = "rl:v1:{"
	hashBytes = 16
	hashChars = (hashBytes*8 + 5) / 6
)

// naming is how a policy names its buckets. Every entry whose value tells buckets apart is in tag or in rest.
type naming struct {
	tag    []int  // the entries that are hashed between the braces, from which a Redis Cluster takes the slot
	rest   []int  // the entries that are hashed behind the braces; for most policies there are none
	begin  []byte // the encoding of the domain, with which every hashed text begins
	suffix string // what follows the hash, if there is one
	fixed  string // the key of a policy all of whose descriptors charge one bucket, else ""
}

// name prepares what BucketKey needs, in a domain that is sharded by these keys, or by none.
func (p *Policy) name(shardBy []string) {
	p.naming = naming{
		begin:  appendText(nil, p.Endpoint.Domain),
		suffix: "}:" + p.Endpoint.ID + ":" + strconv.FormatUint(uint64(p.Version), 10),
	}
	p.naming.tag, p.apart = p.Pattern.shard(shardBy)
	sharded := len(p.naming.tag) > 0
	several := false
	only := make([]Entry, len(p.Pattern)) // where there is one bucket, one of the descriptors that charge it
	for i, m := range p.Pattern {
		only[i] = Entry{Key: m.key, Value: m.text}
		if !m.variable() {
			continue
		}
		several = true
		switch {
		case !sharded:
			p.naming.tag = append(p.naming.tag, i)
		case !slices.Contains(p.naming.tag, i):
			p.naming.rest = append(p.naming.rest, i)
		}
	}
	if !several {
		p.naming.fixed = p.naming.key(only)
	}
}

// BucketKey names the bucket that a descriptor, which must be one that Match found p for, charges:
//
//	rl:v1:{<hash>}:<endpoint_id>:<policy_version>
//	rl:v1:{<hash>}<hash>:<endpoint_id>:<policy_version>
//
// A hash is the base64 form of the first 16 bytes of a SHA-256 over the domain and the key and value of some entries,
// each preceded by its length: so no two joins collide, no raw identity reaches the store, and in a Redis Cluster all
// keys with one text between the braces share a slot. Between the braces are all entries whose values tell buckets
// apart; but where shard_by of the domain names entries, these, in the order of their keys, and the others that tell
// buckets apart, if there are any, are hashed behind the braces.
func (p *Policy) BucketKey(descriptor []Entry) string {
	if p.naming.fixed != "" {
		return p.naming.fixed
	}
	return p.naming.key(descriptor)
}

func (n *naming) key(descriptor []Entry) string {
	var stack [len(keyPrefix) + 2*hashChars + maxIDLength + 16]byte
	key := n.appendHash(append(stack[:0], keyPrefix...), n.tag, descriptor)
	if len(n.rest) > 0 {
		key = n.appendHash(append(key, '}'), n.rest, descriptor)
		return string(append(key, n.suffix[len("}"):]...))
	}
	return string(append(key, n.suffix...))
}

// appendHash hashes the domain and the entries at the given places.
func (n *naming) appendHash(key []byte, places []int, descriptor []Entry) []byte {
	size := len(n.begin)
	for _, i := range places {
		size += encodedSize(descriptor[i].Key) + encodedSize(descriptor[i].Value)
	}
	var stack [512]byte
	if size > len(stack) {
		return n.appendLong(key, places, descriptor)
	}
	text := append(stack[:0], n.begin...)
	for _, i := range places {
		text = appendText(appendText(text, descriptor[i].Key), descriptor[i].Value)
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.AppendEncode(key, sum[:hashBytes])
}

// appendLong hashes what does not fit on the stack, chunk by chunk: it is a fifth slower, but allocates nothing either.
func (n *naming) appendLong(key []byte, places []int, descriptor []Entry) []byte {
	hash := sha256.New()
	hash.Write(n.begin)
	var chunk [512]byte
	for _, i := range places {
		for _, text := range [...]string{descriptor[i].Key, descriptor[i].Value} {
			hash.Write(binary.BigEndian.AppendUint64(chunk[:0], uint64(len(text))))
			for len(text) > 0 {
				n := copy(chunk[:], text)
				hash.Write(chunk[:n])
				text = text[n:]
			}
		}
	}
	var sum [sha256.Size]byte
	return base64.RawURLEncoding.AppendEncode(key, hash.Sum(sum[:0])[:hashBytes])
}

// appendText appends s with its length, so that a sequence of texts is encoded without ambiguity.
func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...)
}

func encodedSize(s string) int { return 8 + len(s) }
