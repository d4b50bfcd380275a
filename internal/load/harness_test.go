package load_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/honestlimit/ratelimit/internal/load"
)

type (
	request  = ratelimitv3.RateLimitRequest
	response = ratelimitv3.RateLimitResponse
)

// service answers by a function, and notes when each request came and which value its last entry had.
type service struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
	answer func(context.Context, *request) (*response, error)

	mu      sync.Mutex
	started time.Time
	arrived []time.Duration
	asked   []*request
}

func (s *service) ShouldRateLimit(ctx context.Context, r *request) (*response, error) {
	s.mu.Lock()
	s.arrived = append(s.arrived, time.Since(s.started))
	s.asked = append(s.asked, r)
	s.mu.Unlock()
	return s.answer(ctx, r)
}

// values are the values of the last entry of each request, and how often each came.
func (s *service) values() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := make(map[string]int)
	for _, r := range s.asked {
		entries := r.GetDescriptors()[len(r.GetDescriptors())-1].GetEntries()
		n[entries[len(entries)-1].GetValue()]++
	}
	return n
}

// serve starts the service on a listener in memory, which a Config dials. Inside a synctest bubble its network takes
// no time.
func serve(t *testing.T, answer func(context.Context, *request) (*response, error)) (*service, load.Config) {
	t.Helper()
	s := &service{answer: answer, started: time.Now()}
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	ratelimitv3.RegisterRateLimitServiceServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s, load.Config{
		Target:      "memory",
		Dial:        func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) },
		Connections: 1,
		Domain:      "mesh",
		Descriptors: [][]load.Entry{{{Key: "tenant", Value: "t" + load.KeyPlaceholder}}},
	}
}

func runLoad(t *testing.T, cfg load.Config) load.Report {
	t.Helper()
	report, err := load.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func ok(context.Context, *request) (*response, error) {
	return &response{OverallCode: ratelimitv3.RateLimitResponse_OK}, nil
}

// decided is an answer with dynamic metadata.
func decided(code ratelimitv3.RateLimitResponse_Code, decision string, degraded bool) *response {
	return &response{
		OverallCode: code,
		DynamicMetadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"cause":    structpb.NewStringValue("timeout"),
			"decision": structpb.NewStringValue(decision),
			"degraded": structpb.NewBoolValue(degraded),
		}},
	}
}

// slower counts the requests that took longer than the bound, which is one of the distribution's.
func slower(t *testing.T, l load.Latency, bound time.Duration) int64 {
	t.Helper()
	steps := l.Distribution
	if len(steps) == 0 {
		t.Fatal("no distribution")
	}
	total := steps[len(steps)-1].Requests
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].UpTo <= bound.Seconds() {
			return total - steps[i].Requests
		}
	}
	return total
}
