package rls

import (
	"fmt"
	"math"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// Names in an answer that Envoy configurations refer to.
const (
	// HeaderDecision is the response header that carries the reason of a denial.
	HeaderDecision = "x-ratelimit-decision"
	// HeaderRetryAfter is the response header that says when to try again, in seconds.
	HeaderRetryAfter = "retry-after"
	// MetadataDecision is the key of the reason in the dynamic metadata: its presence proves that a request was
	// decided. The other keys are cause, endpoint_id, policy_version, degraded and remaining.
	MetadataDecision = "decision"

	metadataCause     = "cause"
	metadataEndpoint  = "endpoint_id"
	metadataVersion   = "policy_version"
	metadataDegraded  = "degraded"
	metadataRemaining = "remaining"
)

const (
	codeOK        = ratelimitv3.RateLimitResponse_OK
	codeOverLimit = ratelimitv3.RateLimitResponse_OVER_LIMIT
)

// respond encodes the answer to decision d, a RateLimitResponse, into p.out.
func (s *Server) respond(p *plan, d failure.Decision) error {
	answer := d.Answer()
	if answer == failure.Unavailable && s.cfg.Deny == DenyGRPCError {
		return unavailable(p, d)
	}
	if answer == failure.OK {
		p.out = append(p.out, s.words.ok...)
	} else {
		p.out = append(p.out, s.words.overLimit...)
		s.appendHeaders(p, d)
	}
	s.appendStatuses(p, d)
	s.appendMetadata(p, d)
	return nil
}

// unavailable names the reason, never the identity: it ends in Envoy's debug log.
func unavailable(p *plan, d failure.Decision) error {
	return status.Error(codes.FailedPrecondition, fmt.Sprintf(
		"%v: the store cannot decide (%v) and endpoint %s is denied without it",
		d.Reason, d.Cause, p.views[d.Governing].policy.Endpoint.ID))
}

// asked tells whether the results hold what the store said, not what an earlier request left in them.
func (p *plan) asked(d failure.Decision) bool {
	return len(p.charges) > 0 && p.tooDear == nobody && !d.Degraded()
}

// appendStatuses has one status for each descriptor, in order: Envoy aligns them by index.
func (s *Server) appendStatuses(p *plan, d failure.Decision) {
	asked := p.asked(d)
	for i := range p.asks {
		charge := p.asks[i].charge
		switch {
		case charge != nobody && asked:
			s.appendStatus(p, charge)
		case charge != nobody && !d.Allowed && charge == d.Governing:
			p.out = appendMessage(p.out, responseStatuses, s.words.statusOverLimit)
		default:
			p.out = appendMessage(p.out, responseStatuses, s.words.statusOK)
		}
	}
}

// appendStatus reports what the store said of one charge.
func (s *Server) appendStatus(p *plan, charge int) {
	r := &p.results[charge]
	code := s.words.statusOK
	if !r.Allowed {
		code = s.words.statusOverLimit
	}
	st := append(p.part[:0], code...)
	st = append(st, p.views[charge].currentLimit...)
	if remaining := min(max(r.Remaining, 0), math.MaxUint32); remaining > 0 {
		st = protowire.AppendTag(st, statusRemaining, protowire.VarintType)
		st = protowire.AppendVarint(st, uint64(remaining))
	}
	st = appendSeconds(st, ceilSeconds(r.ResetAfter)) // whole ones: Envoy drops fractions
	p.out, p.part = appendMessage(p.out, responseStatuses, st), st
}

// appendSeconds appends a duration_until_reset.
func appendSeconds(st []byte, seconds int64) []byte {
	st = protowire.AppendTag(st, statusReset, protowire.BytesType)
	if seconds == 0 {
		return protowire.AppendVarint(st, 0)
	}
	st = protowire.AppendVarint(st, uint64(1+protowire.SizeVarint(uint64(seconds))))
	st = protowire.AppendTag(st, durationSeconds, protowire.VarintType)
	return protowire.AppendVarint(st, uint64(seconds))
}

// appendHeaders adds to the denied request's response. Envoy would add them to an upstream's response if the code were
// OK.
func (s *Server) appendHeaders(p *plan, d failure.Decision) {
	p.out = append(p.out, s.words.header[d.Reason]...)
	if d.RetryAfter > 0 {
		p.out = append(p.out, encode(&ratelimitv3.RateLimitResponse{ResponseHeadersToAdd: []*corev3.HeaderValue{
			{Key: HeaderRetryAfter, Value: fmt.Sprint(ceilSeconds(d.RetryAfter))},
		}})...)
	}
}

// appendMetadata adds the proof that the request was decided, which is also the access log's source.
func (s *Server) appendMetadata(p *plan, d failure.Decision) {
	m := append(p.part[:0], s.words.reason[d.Reason]...)
	m = append(m, s.words.cause[d.Cause]...)
	if d.Degraded() {
		m = append(m, s.words.degraded...)
	} else {
		m = append(m, s.words.notDegraded...)
	}
	if len(p.charges) > 0 {
		m = append(m, p.views[d.Governing].metadata...)
	}
	if p.asked(d) {
		m = appendRemaining(m, p.results[d.Governing].Remaining)
	}
	p.out, p.part = appendMessage(p.out, responseMetadata, m), m
}

// appendRemaining appends the entry of a Struct that says how much remains. All its lengths are fixed.
func appendRemaining(m []byte, remaining int64) []byte {
	const value = 1 + 8 // tag and double of a Value
	m = append(m, 1<<3|2, 2+byte(len(metadataRemaining))+2+value)
	m = append(m, 1<<3|2, byte(len(metadataRemaining)))
	m = append(m, metadataRemaining...)
	m = append(m, 2<<3|2, value, 2<<3|1)
	return protowire.AppendFixed64(m, math.Float64bits(float64(remaining)))
}

// appendMessage appends a field that is a message.
func appendMessage(out []byte, number protowire.Number, message []byte) []byte {
	out = protowire.AppendTag(out, number, protowire.BytesType)
	return protowire.AppendBytes(out, message)
}

// ceilSeconds rounds up: a client that waits as long as it is told must find the bucket ready.
func ceilSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

// metadataEntry is one encoded entry of a Struct.
func metadataEntry(key string, v *structpb.Value) []byte {
	return encode(&structpb.Struct{Fields: map[string]*structpb.Value{key: v}})
}
