package envoy_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// answer is what the fake service says to every question.
type answer func(context.Context, *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error)

// fakeService answers as told, also in ways that the real service never would, and keeps the questions.
type fakeService struct {
	rlsv3.UnimplementedRateLimitServiceServer

	mu    sync.Mutex
	say   answer
	asked []*rlsv3.RateLimitRequest
}

func (f *fakeService) ShouldRateLimit(
	ctx context.Context, req *rlsv3.RateLimitRequest,
) (*rlsv3.RateLimitResponse, error) {
	f.mu.Lock()
	f.asked = append(f.asked, req)
	say := f.say
	f.mu.Unlock()
	return say(ctx, req)
}

// from sets the answer to every question from now on.
func (f *fakeService) from(say answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.say = say
	f.asked = nil
}

// questions are those asked since the last call of from or questions.
func (f *fakeService) questions() []*rlsv3.RateLimitRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := slices.Clone(f.asked)
	f.asked = nil
	return asked
}

// serve starts the fake on addr and returns how to end it, connections and all.
func (f *fakeService) serve(t *testing.T, addr string) (stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
		MinTime: time.Second, PermitWithoutStream: true,
	}))
	rlsv3.RegisterRateLimitServiceServer(server, f)
	healthy := health.NewServer()
	healthy.SetServingStatus(rlsv3.RateLimitService_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(server, healthy)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return sync.OnceFunc(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("fake service: %v", err)
		}
	})
}

func allowed(_ context.Context, req *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	return response(req, rlsv3.RateLimitResponse_OK, "ALLOWED"), nil
}

func limited(_ context.Context, req *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	r := response(req, rlsv3.RateLimitResponse_OVER_LIMIT, "RATE_LIMITED")
	r.ResponseHeadersToAdd = []*corev3.HeaderValue{{Key: "retry-after", Value: "7"}}
	return r, nil
}

func overLimitFailClosed(_ context.Context, req *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	return response(req, rlsv3.RateLimitResponse_OVER_LIMIT, "FAIL_CLOSED"), nil
}

func empty(context.Context, *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	return &rlsv3.RateLimitResponse{}, nil
}

func hang(ctx context.Context, _ *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	<-ctx.Done()
	return nil, status.FromContextError(ctx.Err()).Err()
}

func refuse(code codes.Code) answer {
	return func(context.Context, *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
		return nil, status.Error(code, "no answer")
	}
}

func response(
	req *rlsv3.RateLimitRequest, code rlsv3.RateLimitResponse_Code, decision string,
) *rlsv3.RateLimitResponse {
	statuses := make([]*rlsv3.RateLimitResponse_DescriptorStatus, len(req.GetDescriptors()))
	for i := range statuses {
		statuses[i] = &rlsv3.RateLimitResponse_DescriptorStatus{
			Code: code,
			CurrentLimit: &rlsv3.RateLimitResponse_RateLimit{
				RequestsPerUnit: 10, Unit: rlsv3.RateLimitResponse_RateLimit_MINUTE,
			},
			LimitRemaining:     3,
			DurationUntilReset: durationpb.New(2 * time.Second),
		}
	}
	return &rlsv3.RateLimitResponse{
		OverallCode: code,
		Statuses:    statuses,
		DynamicMetadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"decision": structpb.NewStringValue(decision),
		}},
	}
}
