package load

import (
	"fmt"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// call is one request and its answer, used again for the next.
type call struct {
	request mem.BufferSlice
	reply   reply
}

// reply is what the load generator wants to know of an answer.
type reply struct {
	code ratelimitv3.RateLimitResponse_Code
	// decision is the reason in the dynamic metadata; empty if the service tells none.
	decision []byte
	// degraded is true if the dynamic metadata say that the store did not decide.
	degraded bool
}

// codec sends requests that are encoded already, and reads from answers the three fields of reply. The generator
// shares the machine with what it measures, and the generated code would cost it a third of its time.
type codec struct{}

// Name is empty because gRPC then sends the content type of the default codec.
func (codec) Name() string { return "" }

// Marshal returns the encoded request of a *call.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	c, ok := v.(*call)
	if !ok {
		return nil, fmt.Errorf("load: cannot encode a %T", v)
	}
	return c.request, nil
}

// Unmarshal reads the answer of a *call.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	c, ok := v.(*call)
	if !ok {
		return fmt.Errorf("load: cannot decode a %T", v)
	}
	c.reply = reply{decision: c.reply.decision[:0]}
	if len(data) == 1 {
		return c.reply.read(data[0].ReadOnlyData())
	}
	return c.reply.read(data.Materialize())
}

// Numbers of the fields that are read, of RateLimitResponse and of google.protobuf.Struct and Value.
const (
	fieldOverallCode     = 1
	fieldDynamicMetadata = 6
	fieldStructEntry     = 1
	fieldEntryKey        = 1
	fieldEntryValue      = 2
	fieldValueString     = 3
	fieldValueBool       = 4
)

// Keys of the dynamic metadata.
const (
	metadataDecision = "decision"
	metadataDegraded = "degraded"
)

func (r *reply) read(b []byte) error {
	return fields(b, func(f field) error {
		switch f.number {
		case fieldOverallCode:
			r.code = ratelimitv3.RateLimitResponse_Code(f.varint)
		case fieldDynamicMetadata:
			return fields(f.bytes, r.readMetadata)
		default:
		}
		return nil
	})
}

func (r *reply) readMetadata(entry field) error {
	if entry.number != fieldStructEntry {
		return nil
	}
	var key, value []byte
	if err := fields(entry.bytes, func(f field) error {
		switch f.number {
		case fieldEntryKey:
			key = f.bytes
		case fieldEntryValue:
			value = f.bytes
		default:
		}
		return nil
	}); err != nil {
		return err
	}
	return fields(value, func(f field) error {
		switch {
		case f.number == fieldValueString && string(key) == metadataDecision:
			r.decision = append(r.decision[:0], f.bytes...)
		case f.number == fieldValueBool && string(key) == metadataDegraded:
			r.degraded = f.varint != 0
		}
		return nil
	})
}

// field is one field of an encoded message: varint or bytes, as its type says, or neither.
type field struct {
	number protowire.Number
	varint uint64
	bytes  []byte
}

// fields calls visit with each field of the message b.
func fields(b []byte, visit func(field) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		f := field{number: number}
		switch kind {
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}
