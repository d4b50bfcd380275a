package rls_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/pkg/rls"
)

func TestShield_LetsNothingThroughThatEnvoyMisreads(t *testing.T) {
	ok := &ratelimitv3.RateLimitResponse{OverallCode: ratelimitv3.RateLimitResponse_OK}
	over := &ratelimitv3.RateLimitResponse{OverallCode: ratelimitv3.RateLimitResponse_OVER_LIMIT}
	unserved := status.Error(codes.InvalidArgument, "domain: is empty")
	cases := []struct {
		name string
		resp any
		err  error
		want codes.Code
	}{
		{"ok", ok, nil, codes.OK},
		{"over limit", over, nil, codes.OK},
		{"another service's answer", &grpc_health_v1.HealthCheckResponse{}, nil, codes.OK},
		{"an error", nil, unserved, codes.InvalidArgument},
		{"an error beside an answer", ok, unserved, codes.InvalidArgument},
		{"nil", nil, nil, codes.Internal},
		{"a nil answer", (*ratelimitv3.RateLimitResponse)(nil), nil, codes.Internal},
		{"another service's nil answer", (*grpc_health_v1.HealthCheckResponse)(nil), nil, codes.Internal},
		{"an empty answer", &ratelimitv3.RateLimitResponse{}, nil, codes.Internal},
		{"a code from the future", &ratelimitv3.RateLimitResponse{OverallCode: 7}, nil, codes.Internal},
		{"no message", "OK", nil, codes.Internal},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			shield := &rls.Shield{}
			resp, err := shield.Unary(t.Context(), nil, nil, func(context.Context, any) (any, error) {
				return c.resp, c.err
			})
			if status.Code(err) != c.want {
				t.Errorf("Unary() = %v, want %v", err, c.want)
			}
			if (err == nil) != (resp != nil) {
				t.Errorf("Unary() = %v, %v, want either an answer or an error", resp, err)
			}
		})
	}
}

func TestShield_RecoversPanics(t *testing.T) {
	var values []any
	shield := &rls.Shield{OnPanic: func(value any, stack []byte) {
		values = append(values, value)
		if !strings.Contains(string(stack), "shield_test.go") {
			t.Errorf("stack does not lead to the panic:\n%s", stack)
		}
	}}
	_, err := shield.Unary(t.Context(), nil, nil, func(context.Context, any) (any, error) { panic("unary bug") })
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "unary bug") {
		t.Errorf("Unary() = %v, want INTERNAL without the value", err)
	}
	err = shield.Stream(nil, nil, nil, func(any, grpc.ServerStream) error { panic(errors.New("stream bug")) })
	if status.Code(err) != codes.Internal {
		t.Errorf("Stream() = %v, want INTERNAL", err)
	}
	if len(values) != 2 {
		t.Errorf("OnPanic was told of %v, want two values", values)
	}
}

// A panic anywhere below ends as INTERNAL on the wire, and the server lives on.
func TestShield_KeepsTheServerAlive(t *testing.T) {
	bug := true
	d := admitting()
	admit := d.decide
	d.decide = func(charges []limit.Charge, results []limit.Result) failure.Decision {
		if bug {
			panic("a bug in the store")
		}
		return admit(charges, results)
	}
	client, stop := dial(t, newServer(t, d, rls.Config{}))
	defer stop()
	if _, err := client.ShouldRateLimit(t.Context(), ask(tailor("a"))); status.Code(err) != codes.Internal {
		t.Errorf("ShouldRateLimit() = %v, want INTERNAL", err)
	}
	bug = false
	if _, err := client.ShouldRateLimit(t.Context(), ask(tailor("a"))); err != nil {
		t.Errorf("ShouldRateLimit() after the panic = %v", err)
	}
}
