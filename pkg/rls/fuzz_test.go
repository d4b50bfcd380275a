package rls_test

import (
	"context"
	"strings"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/honestlimit/ratelimit/pkg/rls"
)

// FuzzServer_ShouldRateLimit throws arbitrary bytes at a server on the embedded store. Whatever parses as a request
// gets an answer that Envoy reads rightly, or INVALID_ARGUMENT.
func FuzzServer_ShouldRateLimit(f *testing.F) {
	peek := descriptor("endpoint_id", "peek")
	peek.HitsAddend = wrapperspb.UInt64(0)
	for _, seed := range []*ratelimitv3.RateLimitRequest{
		ask(tailor("acme"), ingest("acme"), peek), ask(descriptor()), ask(tailor("acme"), tailor("acme")), {},
	} {
		raw, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	s := onMemory(f)
	shield := &rls.Shield{OnPanic: func(value any, stack []byte) { f.Errorf("panic: %v\n%s", value, stack) }}
	f.Fuzz(func(t *testing.T, raw []byte) {
		in := &ratelimitv3.RateLimitRequest{}
		if proto.Unmarshal(raw, in) != nil {
			return
		}
		resp, err := shield.Unary(t.Context(), in, nil, handlerOf(s))
		if err != nil {
			if status.Code(err) != codes.InvalidArgument {
				t.Fatalf("error is %v, want INVALID_ARGUMENT", err)
			}
			return
		}
		out := resp.(*ratelimitv3.RateLimitResponse)
		if len(out.GetStatuses()) != len(in.GetDescriptors()) {
			t.Errorf("%d statuses for %d descriptors", len(out.GetStatuses()), len(in.GetDescriptors()))
		}
		if out.GetDynamicMetadata().GetFields()["decision"] == nil {
			t.Error("an answer without the proof that it was decided")
		}
		for _, h := range out.GetResponseHeadersToAdd() {
			if strings.ContainsAny(h.GetValue(), "\r\n") {
				t.Errorf("header %q breaks the line", h.GetKey())
			}
		}
		if _, err := proto.Marshal(out); err != nil {
			t.Errorf("the answer cannot be encoded: %v", err)
		}
	})
}

func handlerOf(s *rls.Server) func(context.Context, any) (any, error) {
	return func(ctx context.Context, req any) (any, error) {
		return s.ShouldRateLimit(ctx, req.(*ratelimitv3.RateLimitRequest))
	}
}
