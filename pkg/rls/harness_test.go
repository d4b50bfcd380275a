package rls_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/pkg/policy"
	"github.com/honestlimit/ratelimit/pkg/rls"
)

// mesh has one policy of each kind that matters here.
const mesh = `
domain: mesh
policies:
  - endpoint_id: pdftalk.ingest
    descriptor: [{key: endpoint_id, value: pdftalk.ingest}, {key: tenant}]
    sliding_window: {limit: 1000, window: 60s}
    fail_mode: fail_closed
    policy_version: 3
  - endpoint_id: resumint.tailor
    descriptor: [{key: endpoint_id, value: resumint.tailor}, {key: tenant}]
    token_bucket: {rate: 100/s, burst: 200}
    fail_mode: fail_open
    fallback_rate_per_process: 5/s
    policy_version: 1
  - endpoint_id: peek
    descriptor: [{key: endpoint_id, value: peek}]
    token_bucket: {rate: 1/s, burst: 10}
    min_cost: 0
    max_cost: 4
    fail_mode: fail_closed
    policy_version: 1
`

// fixed is a source of policies that never change.
type fixed struct{ set *policy.Set }

func (f fixed) Current() *policy.Set { return f.set }

func parsed(tb testing.TB, file string) fixed {
	tb.Helper()
	set, err := policy.Parse("mesh.yaml", []byte(file))
	if err != nil {
		tb.Fatal(err)
	}
	return fixed{set}
}

// decider decides by a function, and keeps a copy of what it was asked last.
type decider struct {
	decide func(charges []limit.Charge, results []limit.Result) failure.Decision

	mu    sync.Mutex
	asked []limit.Charge
	calls int
}

func (d *decider) Decide(
	_ context.Context, charges []limit.Charge, results []limit.Result,
) failure.Decision {
	d.mu.Lock()
	d.asked = append([]limit.Charge(nil), charges...)
	d.calls++
	d.mu.Unlock()
	return d.decide(charges, results)
}

// admitting admits everything, with 7 tokens remaining and 1.5 s until the reset.
func admitting() *decider {
	return &decider{decide: func(_ []limit.Charge, results []limit.Result) failure.Decision {
		for i := range results {
			results[i] = limit.Result{Allowed: true, Remaining: 7, ResetAfter: 1500 * time.Millisecond}
		}
		return failure.Decision{Reason: failure.Allowed, Allowed: true}
	}}
}

func newServer(tb testing.TB, d rls.Decider, cfg rls.Config) *rls.Server {
	tb.Helper()
	s, err := rls.New(parsed(tb, mesh), d, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// descriptor makes one from keys and values in turn.
func descriptor(keysAndValues ...string) *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for i := 0; i < len(keysAndValues); i += 2 {
		d.Entries = append(d.Entries,
			&commonv3.RateLimitDescriptor_Entry{Key: keysAndValues[i], Value: keysAndValues[i+1]})
	}
	return d
}

func ingest(tenant string) *commonv3.RateLimitDescriptor {
	return descriptor("endpoint_id", "pdftalk.ingest", "tenant", tenant)
}

func tailor(tenant string) *commonv3.RateLimitDescriptor {
	return descriptor("endpoint_id", "resumint.tailor", "tenant", tenant)
}

func ask(descriptors ...*commonv3.RateLimitDescriptor) *ratelimitv3.RateLimitRequest {
	return &ratelimitv3.RateLimitRequest{Domain: "mesh", Descriptors: descriptors}
}

// dial serves s behind a Shield and returns a client that talks real gRPC to it. Both are gone when stop returns.
func dial(tb testing.TB, s *rls.Server) (client ratelimitv3.RateLimitServiceClient, stop func()) {
	tb.Helper()
	listener := bufconn.Listen(1 << 16)
	shield := &rls.Shield{}
	server := grpc.NewServer(
		rls.ServerCodec(), grpc.UnaryInterceptor(shield.Unary), grpc.StreamInterceptor(shield.Stream),
	)
	rls.Register(server, s)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); err != nil {
			tb.Error(err)
		}
	})
	conn, err := grpc.NewClient("passthrough:///buffer",
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listener.Dial() }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	return ratelimitv3.NewRateLimitServiceClient(conn), func() {
		conn.Close()
		server.Stop()
		serving.Wait()
	}
}
