package main

import (
	"context"
	"net"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
)

// floor answers a constant: what a decision would cost if it cost nothing.
type floor struct {
	rls.UnimplementedRateLimitServiceServer
}

func (floor) ShouldRateLimit(context.Context, *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	return &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK}, nil
}

func serveFloor(ctx context.Context, addr string) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	rls.RegisterRateLimitServiceServer(server, floor{})
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	return server.Serve(listener)
}
