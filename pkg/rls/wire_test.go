package rls

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/pkg/policy"
)

// parsed is what parse must get right.
type parsed struct {
	Domain  string
	Entries []policy.Entry
	Asks    []ask
	Err     string
}

func (p *plan) parsed(err error) parsed {
	if err != nil {
		return parsed{Err: err.Error()}
	}
	return parsed{Domain: p.domain, Entries: p.entries, Asks: p.asks}
}

// agree compares parse with the generated code. Only texts that are no UTF-8 are read and not refused.
func agree(t *testing.T, raw []byte) {
	t.Helper()
	got := new(plan)
	err := got.parse(string(raw))
	in := &ratelimitv3.RateLimitRequest{}
	if broken := proto.Unmarshal(raw, in); broken != nil {
		if err == nil && !strings.Contains(broken.Error(), "UTF-8") {
			t.Fatalf("%x parses, but generated code says: %v", raw, broken)
		}
		return
	}
	want := new(plan)
	reference := want.parsed(want.referenceParse(in))
	if diff := cmp.Diff(reference, got.parsed(err), cmp.AllowUnexported(ask{}, override{})); diff != "" {
		t.Fatalf("%x parses otherwise than by generated code (-generated +parse):\n%s", raw, diff)
	}
}

func FuzzPlan_ParseAgreesWithGeneratedCode(f *testing.F) {
	for _, in := range requests() {
		raw, err := proto.Marshal(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
		f.Add(append(raw, raw...)) // fields twice: lists grow, messages merge, the last number counts
	}
	f.Fuzz(agree)
}

func requests() []*ratelimitv3.RateLimitRequest {
	entry := &commonv3.RateLimitDescriptor_Entry{Key: "tenant", Value: "acme"}
	override := func(unit typev3.RateLimitUnit, multiplier *wrapperspb.UInt32Value) *commonv3.RateLimitDescriptor {
		return &commonv3.RateLimitDescriptor{
			Entries: []*commonv3.RateLimitDescriptor_Entry{entry, {Key: "x"}},
			Limit: &commonv3.RateLimitDescriptor_RateLimitOverride{
				RequestsPerUnit: 7, Unit: unit, UnitMultiplier: multiplier,
			},
		}
	}
	ask := func(descriptors ...*commonv3.RateLimitDescriptor) *ratelimitv3.RateLimitRequest {
		return &ratelimitv3.RateLimitRequest{Domain: "mesh", Descriptors: descriptors, HitsAddend: 3}
	}
	return []*ratelimitv3.RateLimitRequest{
		{},
		{Domain: "mesh"},
		ask(&commonv3.RateLimitDescriptor{}),
		ask(override(typev3.RateLimitUnit_DAY, nil), override(typev3.RateLimitUnit_HOUR, wrapperspb.UInt32(3))),
		ask(override(typev3.RateLimitUnit_UNKNOWN, nil)), ask(override(typev3.RateLimitUnit_DAY, wrapperspb.UInt32(0))),
		ask(&commonv3.RateLimitDescriptor{IsNegativeHits: true}),
		ask(&commonv3.RateLimitDescriptor{HitsAddend: wrapperspb.UInt64(0)}),
		ask(&commonv3.RateLimitDescriptor{HitsAddend: wrapperspb.UInt64(1 << 40)}),
		ask(make([]*commonv3.RateLimitDescriptor, 65)...),
		ask(&commonv3.RateLimitDescriptor{Entries: []*commonv3.RateLimitDescriptor_Entry{{Value: "no key"}}}),
		ask(&commonv3.RateLimitDescriptor{Entries: make([]*commonv3.RateLimitDescriptor_Entry, 17)}),
		{Domain: strings.Repeat("d", MaxDomain+1), Descriptors: make([]*commonv3.RateLimitDescriptor, 1)},
	}
}

// Every answer, in every form that a decision can take, decodes to what the generated code would have sent.
func TestServer_AnswersAgreeWithGeneratedCode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s, err := New(none{}, nobodyDecides{}, Config{Deny: DenyOverLimit})
	if err != nil {
		t.Fatal(err)
	}
	limits := []limit.Limit{
		limit.NewSlidingWindow(10, 90*time.Second), limit.NewSlidingWindow(1, time.Millisecond),
		limit.NewTokenBucket(limit.MaxTokens*limit.Micro, limit.Rate{Micro: limit.Micro, Period: limit.MaxPeriod}),
	}
	for range 5000 {
		p := s.plan()
		p.tooDear = nobody
		for range r.IntN(4) {
			l := limits[r.IntN(len(limits))]
			governing := &policy.Policy{Endpoint: limit.Endpoint{ID: "e"}, Version: r.Uint32(), Limit: l}
			p.charges = append(p.charges, limit.Charge{Limit: l})
			p.views = append(p.views, newView(governing, l))
			p.results = append(p.results, limit.Result{
				Allowed: r.IntN(2) == 0, Remaining: r.Int64N(1 << r.IntN(40)),
				ResetAfter: time.Duration(r.Int64N(1 << r.IntN(60))),
			})
		}
		for range 1 + r.IntN(5) {
			p.asks = append(p.asks, ask{charge: r.IntN(len(p.charges)+1) - 1})
		}
		d := failure.Decision{
			Reason: failure.Reasons[r.IntN(len(failure.Reasons))], Cause: failure.Causes()[r.IntN(len(failure.Causes()))],
			Allowed: r.IntN(2) == 0, RetryAfter: time.Duration(r.IntN(3)) * 1500 * time.Millisecond,
		}
		if n := len(p.charges); n > 0 {
			d.Governing = r.IntN(n)
			p.tooDear = r.IntN(n+3) - 3
			p.tooDear = max(p.tooDear, nobody)
		}
		if err := s.respond(p, d); err != nil {
			t.Fatal(err)
		}
		got := &ratelimitv3.RateLimitResponse{}
		if err := proto.Unmarshal(p.out, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s.referenceAnswer(p, d), got, protocmp.Transform()); diff != "" {
			t.Fatalf("the answer to %+v differs (-generated +respond):\n%s", d, diff)
		}
		p.free()
	}
}

type none struct{}

func (none) Current() *policy.Set { return nil }

type nobodyDecides struct{}

func (nobodyDecides) Decide(_ context.Context, _ []limit.Charge, r []limit.Result) failure.Decision {
	for i := range r {
		r[i] = limit.Result{Allowed: true, Remaining: 5}
	}
	return failure.Decision{Reason: failure.Allowed, Allowed: true}
}

// one is a source of one policy.
type one struct{ set *policy.Set }

func (o one) Current() *policy.Set { return o.set }

// wired is one request on the way that a gRPC server takes it, without gRPC.
func wired(tb testing.TB) func() {
	tb.Helper()
	set, err := policy.Parse("p.yaml", []byte(`
domain: mesh
policies:
  - endpoint_id: e
    descriptor: [{key: endpoint_id, value: e}, {key: tenant}]
    token_bucket: {rate: 1/s, burst: 10}
    fail_mode: fail_closed
`))
	if err != nil {
		tb.Fatal(err)
	}
	s, err := New(one{set}, nobodyDecides{}, Config{})
	if err != nil {
		tb.Fatal(err)
	}
	raw, err := proto.Marshal(&ratelimitv3.RateLimitRequest{
		Domain: "mesh", Descriptors: []*commonv3.RateLimitDescriptor{{Entries: []*commonv3.RateLimitDescriptor_Entry{
			{Key: "endpoint_id", Value: "e"}, {Key: "tenant", Value: "acme"},
		}}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	data, c := mem.BufferSlice{mem.SliceBuffer(raw)}, codec{encoding.GetCodecV2(grpcproto.Name)}
	ctx := context.Background()
	return func() {
		decode := func(v any) error { return c.Unmarshal(data, v) }
		out, err := shouldRateLimit(s, ctx, decode, nil)
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := c.Marshal(out); err != nil {
			tb.Fatal(err)
		}
	}
}

func BenchmarkServer_Wire(b *testing.B) {
	request := wired(b)
	b.ReportAllocs()
	for b.Loop() {
		request()
	}
}
