package rls

import (
	"context"
	"runtime/debug"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Shield is the outermost interceptor of a gRPC server. A bug ends in it as INTERNAL, which Envoy takes for an error
// and handles by the route's failure mode, and never as an answer that Envoy takes for "allowed": it reads a response
// of zero bytes, and any overall code UNKNOWN, as OK. The zero value is usable.
type Shield struct {
	// OnPanic is told what a handler panicked with and its stack, before the caller is answered. May be nil.
	OnPanic func(value any, stack []byte)
}

// Unary guards all unary methods of the server.
func (s *Shield) Unary(
	ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (resp any, err error) {
	defer func() {
		if value := recover(); value != nil {
			resp, err = nil, s.panicked(value)
		}
	}()
	resp, err = handler(ctx, req)
	if err != nil {
		return nil, err
	}
	return vetted(resp)
}

// Stream guards all streaming methods of the server (health watches, reflection).
func (s *Shield) Stream(
	srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler,
) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = s.panicked(value)
		}
	}()
	return handler(srv, stream)
}

func (s *Shield) panicked(value any) error {
	if s.OnPanic != nil {
		s.OnPanic(value, debug.Stack())
	}
	return status.Error(codes.Internal, "a bug in the rate limit service; its log has the details")
}

// vetted refuses the answers that Envoy would misread.
func vetted(resp any) (any, error) {
	if p, ok := resp.(*plan); ok && len(p.out) > 0 { // respond writes OK or OVER_LIMIT, and nothing else
		return resp, nil
	}
	message, ok := resp.(proto.Message)
	if !ok || !message.ProtoReflect().IsValid() {
		return nil, status.Error(codes.Internal, "a handler returned neither an answer nor an error")
	}
	answer, ok := resp.(*ratelimitv3.RateLimitResponse)
	if ok && answer.GetOverallCode() != codeOK && answer.GetOverallCode() != codeOverLimit {
		return nil, status.Error(codes.Internal, "a handler answered neither OK nor OVER_LIMIT")
	}
	return resp, nil
}
