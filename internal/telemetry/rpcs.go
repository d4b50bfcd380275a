package telemetry

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// lastCode is the highest gRPC status code there is.
const lastCode = codes.Unauthenticated

// RPCs counts the gRPC calls that a server answers. As an interceptor it belongs outside every other one, so that it
// sees what the caller sees.
type RPCs struct {
	byCode [lastCode + 1]prometheus.Counter
	panics prometheus.Counter
}

// NewRPCs returns a counter of calls.
func NewRPCs(reg prometheus.Registerer) *RPCs {
	r := &RPCs{panics: panicsTotal.counter(reg)}
	total := rpcsTotal.counterVec(reg)
	for c := range r.byCode {
		r.byCode[c] = total.WithLabelValues(codes.Code(c).String())
	}
	return r
}

// Unary counts one call by the code of its answer.
func (r *RPCs) Unary(
	ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	resp, err := handler(ctx, req)
	code := status.Code(err)
	if code > lastCode {
		code = codes.Unknown
	}
	r.byCode[code].Inc()
	return resp, err
}

// Panicked counts one recovered panic.
func (r *RPCs) Panicked() { r.panics.Inc() }
