package rls

import "google.golang.org/protobuf/encoding/protowire"

// The two messages of this API are small and on every request's way, so they are read and written here by hand,
// without reflection and nearly without allocation. A fuzz test holds this file and parse.go equal to the generated
// code. Field numbers, and whether a field is a number or a text, are those of envoy/service/ratelimit/v3/rls.proto and
// envoy/extensions/common/ratelimit/v3/ratelimit.proto.

// fieldID is the number of a field and the type it must have on the wire; others are skipped, as the protocol wants.
type fieldID struct {
	number protowire.Number
	kind   protowire.Type
}

// The fields that are read.
var (
	requestDomain      = fieldID{1, protowire.BytesType}
	requestDescriptors = fieldID{2, protowire.BytesType}
	requestHitsAddend  = fieldID{3, protowire.VarintType}

	descriptorEntries    = fieldID{1, protowire.BytesType}
	descriptorLimit      = fieldID{2, protowire.BytesType}
	descriptorHitsAddend = fieldID{3, protowire.BytesType}
	descriptorNegative   = fieldID{4, protowire.VarintType}

	entryKey   = fieldID{1, protowire.BytesType}
	entryValue = fieldID{2, protowire.BytesType}

	overrideRequests   = fieldID{1, protowire.VarintType}
	overrideUnit       = fieldID{2, protowire.VarintType}
	overrideMultiplier = fieldID{3, protowire.BytesType}

	wrapperValue = fieldID{1, protowire.VarintType}
)

// The fields that are written piece by piece.
const (
	responseStatuses = 2
	responseMetadata = 6

	statusRemaining = 3
	statusReset     = 4

	durationSeconds = 1
)

// wire walks over the fields of an encoded message. Strings may hold any bytes: Envoy sends header values as they come.
type wire struct {
	rest   string
	field  fieldID
	text   string // of a field of BytesType
	number uint64 // of a field of VarintType
	broken bool   // the message is none
}

// next reads the next field; false at the end, or if the message is broken.
func (w *wire) next() bool {
	if w.rest == "" || w.broken {
		return false
	}
	tag, ok := w.varint()
	number, kind := protowire.DecodeTag(tag)
	if !ok || number < protowire.MinValidNumber {
		w.broken = true
		return false
	}
	w.field = fieldID{number, kind}
	switch kind {
	case protowire.VarintType:
		w.number, ok = w.varint()
	case protowire.BytesType:
		var size uint64
		if size, ok = w.varint(); ok && size <= uint64(len(w.rest)) {
			w.text, w.rest = w.rest[:size], w.rest[size:]
		} else {
			ok = false
		}
	default:
		ok = w.skip()
	}
	w.broken = !ok
	return ok
}

// varint is protowire.ConsumeVarint on a string.
func (w *wire) varint() (value uint64, ok bool) {
	for i := 0; i < len(w.rest) && i < 10; i++ {
		b := w.rest[i]
		if i == 9 && b > 1 {
			return 0, false
		}
		value |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			w.rest = w.rest[i+1:]
			return value, true
		}
	}
	return 0, false
}

// skip passes over a field of a type that these messages do not use.
func (w *wire) skip() bool {
	n := protowire.ConsumeFieldValue(w.field.number, w.field.kind, []byte(w.rest))
	if n < 0 {
		return false
	}
	w.rest = w.rest[n:]
	return true
}

// parseNumber reads a UInt64Value or UInt32Value into n, which keeps its value if none is there.
func parseNumber(text string, n *uint64) (broken bool) {
	w := wire{rest: text}
	for w.next() {
		if w.field == wrapperValue {
			*n = w.number
		}
	}
	return w.broken
}
