package rls

import (
	"math"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/pkg/policy"
)

// What parse.go and respond.go do by hand, done with the generated messages: slow, plain, and what they are compared
// with.

func (p *plan) referenceParse(in *ratelimitv3.RateLimitRequest) error {
	descriptors := in.GetDescriptors()
	switch domain := in.GetDomain(); {
	case domain == "":
		return invalid("domain", "is empty, must name a configured domain")
	case len(domain) > MaxDomain:
		return invalid("domain", "is %d bytes long, at most %d", len(domain), MaxDomain)
	case len(descriptors) == 0:
		return invalid("descriptors", "is empty, must have at least one")
	case len(descriptors) > MaxDescriptors:
		return invalid("descriptors", "has %d, at most %d", len(descriptors), MaxDescriptors)
	}
	p.domain = in.GetDomain()
	requestHits := uint64(max(in.GetHitsAddend(), 1)) // the protocol reads 0 as "not set"
	for i, d := range descriptors {
		if err := p.referenceDescriptor(i, d, requestHits); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) referenceDescriptor(i int, d *commonv3.RateLimitDescriptor, requestHits uint64) error {
	entries := d.GetEntries()
	if len(entries) > MaxEntries {
		return invalid(field(i, "entries"), "has %d, at most %d", len(entries), MaxEntries)
	}
	if d.GetIsNegativeHits() {
		return invalid(field(i, "is_negative_hits"), "is true, but refunds are not supported")
	}
	a := ask{first: len(p.entries), hits: requestHits, charge: nobody}
	if d.GetHitsAddend() != nil {
		a.hits = d.GetHitsAddend().GetValue() // here 0 is set on purpose: it asks without charging
	}
	if d.GetLimit() != nil {
		var err error
		if a.override, err = referenceOverride(i, d.GetLimit()); err != nil {
			return err
		}
	}
	for _, e := range entries {
		p.entries = append(p.entries, policy.Entry{Key: e.GetKey(), Value: e.GetValue()})
	}
	a.end = len(p.entries)
	p.asks = append(p.asks, a)
	return checkEntries(i, p.entries[a.first:a.end])
}

func referenceOverride(i int, o *commonv3.RateLimitDescriptor_RateLimitOverride) (override, error) {
	seconds, ok := unitSeconds[o.GetUnit()]
	if !ok {
		return override{}, invalid(field(i, "limit.unit"),
			"is %v, must be SECOND, MINUTE, HOUR, DAY, MONTH or YEAR", o.GetUnit())
	}
	if m := o.GetUnitMultiplier(); m != nil {
		if most := limit.MaxPeriod / limit.Micro / seconds; m.GetValue() < 1 || int64(m.GetValue()) > most {
			return override{}, invalid(field(i, "limit.unit_multiplier"),
				"is %d, must be from 1 to %d for this unit", m.GetValue(), most)
		}
		seconds *= int64(m.GetValue())
	}
	requests := int64(o.GetRequestsPerUnit())
	if requests < 1 || requests > limit.MaxTokens {
		return override{}, invalid(field(i, "limit.requests_per_unit"),
			"is %d, must be from 1 to %d", requests, limit.MaxTokens)
	}
	return override{requests: requests, seconds: seconds}, nil
}

// referenceAnswer is the answer to d, unless it is a gRPC error.
func (s *Server) referenceAnswer(p *plan, d failure.Decision) *ratelimitv3.RateLimitResponse {
	out := &ratelimitv3.RateLimitResponse{
		OverallCode: codeOK, Statuses: p.referenceStatuses(d), DynamicMetadata: p.referenceMetadata(d),
	}
	if d.Answer() == failure.OK {
		return out
	}
	out.OverallCode = codeOverLimit
	out.ResponseHeadersToAdd = []*corev3.HeaderValue{{Key: HeaderDecision, Value: d.Reason.String()}}
	if d.RetryAfter > 0 {
		out.ResponseHeadersToAdd = append(out.ResponseHeadersToAdd, &corev3.HeaderValue{
			Key: HeaderRetryAfter, Value: strconv.FormatInt(ceilSeconds(d.RetryAfter), 10),
		})
	}
	return out
}

// statuses has one entry for each descriptor, in order: Envoy aligns them by index.
func (p *plan) referenceStatuses(d failure.Decision) []*ratelimitv3.RateLimitResponse_DescriptorStatus {
	list := make([]*ratelimitv3.RateLimitResponse_DescriptorStatus, len(p.asks))
	memory := make([]ratelimitv3.RateLimitResponse_DescriptorStatus, len(p.asks))
	asked := p.asked(d)
	for i := range p.asks {
		list[i] = &memory[i]
		list[i].Code = codeOK
		charge := p.asks[i].charge
		switch {
		case charge == nobody:
		case asked:
			p.referenceFill(list[i], charge)
		case !d.Allowed && charge == d.Governing:
			list[i].Code = codeOverLimit
		}
	}
	return list
}

// fillStatus reports what the store said of one charge.
func (p *plan) referenceFill(st *ratelimitv3.RateLimitResponse_DescriptorStatus, charge int) {
	r := &p.results[charge]
	if !r.Allowed {
		st.Code = codeOverLimit
	}
	st.CurrentLimit = currentLimit(p.views[charge].policy.Endpoint.ID, p.charges[charge].Limit)
	st.LimitRemaining = uint32(min(max(r.Remaining, 0), math.MaxUint32))
	st.DurationUntilReset = &durationpb.Duration{Seconds: ceilSeconds(r.ResetAfter)} // Envoy drops fractions
}

func (p *plan) referenceMetadata(d failure.Decision) *structpb.Struct {
	fields := map[string]*structpb.Value{
		MetadataDecision: structpb.NewStringValue(d.Reason.String()),
		metadataCause:    structpb.NewStringValue(d.Cause.String()),
		metadataDegraded: structpb.NewBoolValue(d.Degraded()),
	}
	if len(p.charges) > 0 {
		governing := p.views[d.Governing].policy
		fields[metadataEndpoint] = structpb.NewStringValue(governing.Endpoint.ID)
		fields[metadataVersion] = structpb.NewNumberValue(float64(governing.Version))
	}
	if p.asked(d) {
		fields[metadataRemaining] = structpb.NewNumberValue(float64(p.results[d.Governing].Remaining))
	}
	return &structpb.Struct{Fields: fields}
}
