package rls_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/honestlimit/ratelimit/internal/memstore"
	"github.com/honestlimit/ratelimit/pkg/emergency"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/policy"
	"github.com/honestlimit/ratelimit/pkg/rls"
)

func ExampleNew() {
	set, err := policy.Parse("mesh.yaml", []byte(mesh))
	if err != nil {
		panic(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		panic(err)
	}
	guard, err := failure.NewGuard(store, nil, emergency.New(), failure.GuardConfig{})
	if err != nil {
		panic(err)
	}
	service, err := rls.New(fixed{set}, guard, rls.Config{})
	if err != nil {
		panic(err)
	}

	// A real service is reached over gRPC, behind a Shield.
	shield := &rls.Shield{}
	server := grpc.NewServer(
		rls.ServerCodec(), grpc.UnaryInterceptor(shield.Unary), grpc.StreamInterceptor(shield.Stream),
	)
	rls.Register(server, service)

	answer, err := service.ShouldRateLimit(context.Background(), &ratelimitv3.RateLimitRequest{
		Domain: "mesh",
		Descriptors: []*commonv3.RateLimitDescriptor{{Entries: []*commonv3.RateLimitDescriptor_Entry{
			{Key: "endpoint_id", Value: "resumint.tailor"}, {Key: "tenant", Value: "acme"},
		}}},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.GetOverallCode(), answer.GetStatuses()[0].GetLimitRemaining(), "left")
	// Output: OK 199 left
}
