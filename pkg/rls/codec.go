package rls

import (
	"context"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Register makes a gRPC server answer ShouldRateLimit by s. The server must have been made with ServerCodec.
func Register(r grpc.ServiceRegistrar, s *Server) {
	desc := ratelimitv3.RateLimitService_ServiceDesc
	desc.Methods = []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: shouldRateLimit}}
	r.RegisterService(&desc, s)
}

// ServerCodec is the option that lets requests of this service be read, and answers be written, without going through
// the generated messages. Messages of other services are coded as ever.
func ServerCodec() grpc.ServerOption {
	return grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(proto.Name)})
}

// shouldRateLimit stands where the generated handler would.
//
//nolint:revive // the order of its arguments is gRPC's
func shouldRateLimit(
	srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor,
) (any, error) {
	s := srv.(*Server)
	p := s.plan()
	if err := decode(p); err != nil {
		p.free()
		return nil, err
	}
	if interceptor == nil {
		return handle(ctx, p)
	}
	info := &grpc.UnaryServerInfo{Server: srv, FullMethod: ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName}
	return interceptor(ctx, p, info, handle)
}

// handle is a grpc.UnaryHandler, whose request and answer are a plan. The codec frees it once the answer is written.
func handle(ctx context.Context, in any) (any, error) {
	p := in.(*plan)
	if err := p.server.answer(ctx, p, p.text); err != nil {
		p.free()
		return nil, err
	}
	return p, nil
}

// codec codes this service's messages itself and leaves all others to the codec of gRPC.
type codec struct{ encoding.CodecV2 }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	p, ok := v.(*plan)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	out := mem.BufferSlice{mem.Copy(p.out, mem.DefaultBufferPool())}
	p.free()
	return out, nil
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	p, ok := v.(*plan)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	if len(data) == 1 {
		p.text = string(data[0].ReadOnlyData())
		return nil
	}
	p.text = string(data.Materialize())
	return nil
}
