package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"runtime"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
)

// floor answers a constant, by a gRPC server with default options: what a decision would cost if it cost nothing.
type floor struct {
	rls.UnimplementedRateLimitServiceServer
}

func (floor) ShouldRateLimit(context.Context, *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	return &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK}, nil
}

// serveFloor serves the floor in a process of its own, so that its CPU can be told from the load generator's.
func serveFloor(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench floor", flag.ContinueOnError)
	addr := flags.String("grpc", "127.0.0.1:8081", "address to answer on")
	admin := flags.String("admin", "127.0.0.1:9090", "address of /metrics, which counts allocations")
	if err := flags.Parse(args); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	metrics := &http.Server{Addr: *admin, Handler: http.HandlerFunc(countAllocations)}
	go func() {
		if err := metrics.ListenAndServe(); err != http.ErrServerClosed { // as it is returned, never wrapped
			fmt.Println("bench floor:", err)
		}
	}()
	defer metrics.Close()
	server := grpc.NewServer()
	rls.RegisterRateLimitServiceServer(server, floor{})
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	return server.Serve(listener)
}

// countAllocations tells the one metric that the service's own endpoint is asked for too.
func countAllocations(w http.ResponseWriter, _ *http.Request) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Fprintf(w, "%s %d\n", allocationsMetric, m.Mallocs)
}
