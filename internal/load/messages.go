package load

import (
	"fmt"
	"strconv"
	"strings"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// maxReady is the number of keys whose requests are encoded ahead of the run.
const maxReady = 1 << 16

// messages holds the encoded requests. It is read only, and so safe for concurrent use.
type messages struct {
	// byDigits are the requests for keys of 1, 2, ... digits, to be filled in.
	byDigits []template
	// ready are the finished requests of the first keys. gRPC reads a message and never writes to it, so that all
	// workers can send the same bytes.
	ready []mem.BufferSlice
}

// template is an encoded request whose key is still to be written.
type template struct {
	encoded []byte
	// positions are the indexes in encoded of the digits of the key, once for each placeholder.
	positions []int
}

func newMessages(cfg Config) (*messages, error) {
	m := &messages{}
	for digits := range len(strconv.Itoa(cfg.Keys - 1)) {
		t, err := newTemplate(cfg, digits+1)
		if err != nil {
			return nil, err
		}
		m.byDigits = append(m.byDigits, t)
	}
	m.ready = make([]mem.BufferSlice, min(cfg.Keys, maxReady))
	for key := range m.ready {
		m.ready[key] = m.encode(key)
	}
	return m, nil
}

// newTemplate finds where the key is by encoding two keys that differ in every digit.
func newTemplate(cfg Config, digits int) (template, error) {
	encoded, err := proto.Marshal(request(cfg, strings.Repeat("0", digits)))
	if err != nil {
		return template{}, fmt.Errorf("load: encoding the request: %w", err)
	}
	other, err := proto.Marshal(request(cfg, strings.Repeat("9", digits)))
	if err != nil {
		return template{}, fmt.Errorf("load: encoding the request: %w", err)
	}
	t := template{encoded: encoded}
	for i := range encoded {
		if encoded[i] != other[i] {
			t.positions = append(t.positions, i)
		}
	}
	return t, nil
}

// request is the message in which every placeholder is replaced by key.
func request(cfg Config, key string) *ratelimitv3.RateLimitRequest {
	r := &ratelimitv3.RateLimitRequest{Domain: cfg.Domain, HitsAddend: cfg.Hits}
	for _, entries := range cfg.Descriptors {
		d := &commonv3.RateLimitDescriptor{}
		for _, e := range entries {
			d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{
				Key: e.Key, Value: strings.ReplaceAll(e.Value, KeyPlaceholder, key),
			})
		}
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

// at is the encoded request for key.
func (m *messages) at(key int) mem.BufferSlice {
	if key < len(m.ready) {
		return m.ready[key]
	}
	return m.encode(key)
}

func (m *messages) encode(key int) mem.BufferSlice {
	var room [20]byte
	digits := strconv.AppendInt(room[:0], int64(key), 10)
	t := m.byDigits[len(digits)-1]
	encoded := append([]byte(nil), t.encoded...)
	for i, position := range t.positions {
		encoded[position] = digits[i%len(digits)]
	}
	return mem.BufferSlice{mem.SliceBuffer(encoded)}
}
