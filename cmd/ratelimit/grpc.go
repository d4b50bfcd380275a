package main

import (
	"context"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/honestlimit/ratelimit/pkg/rls"
)

const (
	// maxMessage bounds a request: far more than Envoy's own bound on headers lets it send.
	maxMessage = 4 << 20
	// streamWorkers are kept for requests that wait for the store at the same time.
	streamWorkers = 128
	// maxConnectionAge makes long-lived connections of Envoy spread over replicas that came later.
	maxConnectionAge      = 5 * time.Minute
	maxConnectionAgeGrace = 30 * time.Second
	// minPing is the shortest time between pings that is not taken for abuse; Envoys are set to 5 or 10 s.
	minPing = 4 * time.Second
	// A connection whose peer is gone without a word is found within a minute.
	pingAfter   = 45 * time.Second
	pingTimeout = 15 * time.Second
)

// newGRPC makes the gRPC server with everything that Envoy and its operators ask of it.
func (s *service) newGRPC(answerer *rls.Server, events *observers) error {
	shield := &rls.Shield{OnPanic: events.panicked}
	draining, drain := context.WithCancel(context.Background())
	s.drain = drain
	options := []grpc.ServerOption{
		rls.ServerCodec(),
		// A worker's stack has grown already, which a goroutine made for one request must do first. More requests than
		// workers at a time get goroutines of their own.
		grpc.NumStreamWorkers(streamWorkers),
		grpc.ChainUnaryInterceptor(events.rpcs.Unary, shield.Unary),
		grpc.ChainStreamInterceptor(shield.Stream, endWith(draining)),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: maxConnectionAge, MaxConnectionAgeGrace: maxConnectionAgeGrace,
			Time: pingAfter, Timeout: pingTimeout,
		}),
	}
	if s.flags.GRPCCert != "" {
		certs, err := newCertificates(s.flags.GRPCCert, s.flags.GRPCKey, s.flags.GRPCClientCA, func(err error) {
			s.log.Error().Err(err).Msg("new certificates cannot be used, the old ones stay")
		})
		if err != nil {
			return err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(certs.server())))
	}
	s.grpc, s.health = grpc.NewServer(options...), health.NewServer()
	rls.Register(s.grpc, answerer)
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	s.setHealth(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	return nil
}

func (s *service) setHealth(status grpc_health_v1.HealthCheckResponse_ServingStatus) {
	for _, name := range [...]string{"", ratelimitv3.RateLimitService_ServiceDesc.ServiceName} {
		s.health.SetServingStatus(name, status)
	}
}

// endWith ends every stream when ctx does: a health watch would otherwise last as long as its client likes.
func endWith(ctx context.Context) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		bounded, cancel := context.WithCancel(stream.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		return handler(srv, boundedStream{stream, bounded})
	}
}

// boundedStream is a stream with another context, which gRPC's interface wants to be kept in it.
type boundedStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context is the stream's own, ended earlier.
func (b boundedStream) Context() context.Context { return b.ctx }
