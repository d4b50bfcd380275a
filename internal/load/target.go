package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const (
	unixPrefix     = "unix:"
	connectTimeout = 10 * time.Second
)

// ErrUnreachable is the error of a run that could not begin because nothing answers at its target.
var ErrUnreachable = errors.New("load: the target cannot be reached")

// target is the connections to the service.
type target struct {
	conns []*grpc.ClientConn
	// opened counts the sockets that were opened, refused the attempts that failed.
	opened, refused atomic.Int64
}

// connect opens every connection, so that no request pays for a handshake.
func connect(ctx context.Context, cfg Config) (*target, error) {
	t := &target{}
	for range cfg.Connections {
		conn, err := grpc.NewClient("passthrough:///"+cfg.Target, t.options(cfg)...)
		if err != nil {
			return nil, errors.Join(&FieldError{Field: "Target", Problem: err.Error()}, t.close())
		}
		t.conns = append(t.conns, conn)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	for _, conn := range t.conns {
		conn.Connect()
	}
	for _, conn := range t.conns {
		if err := await(ctx, conn); err != nil {
			return nil, errors.Join(fmt.Errorf("%w: %w", ErrUnreachable, err), t.close())
		}
	}
	return t, nil
}

func (t *target) options(cfg Config) []grpc.DialOption {
	secured := insecure.NewCredentials()
	if cfg.TLS != nil {
		secured = credentials.NewTLS(cfg.TLS)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(secured),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{})),
		grpc.WithContextDialer(t.counting(cfg.Dial)),
		grpc.WithConnectParams(reconnect()),
		grpc.WithDisableRetry(), // gRPC then keeps no copy of each request for a retry that nobody configured
		grpc.WithDisableServiceConfig(),
	}
	if strings.HasPrefix(cfg.Target, unixPrefix) {
		options = append(options, grpc.WithAuthority("localhost"))
	}
	return options
}

// reconnect is how a lost connection is tried again: fast, because gRPC's second of patience would be measured as the
// service's recovery. Envoy reconnects with its next request.
func reconnect() grpc.ConnectParams {
	return grpc.ConnectParams{
		Backoff: backoff.Config{
			BaseDelay: 10 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 100 * time.Millisecond,
		},
		MinConnectTimeout: time.Second,
	}
}

// counting counts what becomes of each attempt to open a socket.
func (t *target) counting(dial dialer) dialer {
	return func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := dial(ctx, address)
		if err != nil {
			t.refused.Add(1)
			return nil, err
		}
		t.opened.Add(1)
		return conn, nil
	}
}

type dialer = func(ctx context.Context, address string) (net.Conn, error)

// dialSocket opens host:port or unix:PATH.
func dialSocket(ctx context.Context, address string) (net.Conn, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		network, address = "unix", path
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// await waits until conn can be used, or returns why it cannot.
func await(ctx context.Context, conn *grpc.ClientConn) error {
	for {
		state := conn.GetState()
		if state == connectivity.Ready {
			return nil
		}
		if state == connectivity.TransientFailure {
			if err := whyNot(ctx, conn); err != nil {
				return err
			}
		}
		if !conn.WaitForStateChange(ctx, state) {
			return fmt.Errorf("no connection: %w", context.Cause(ctx))
		}
	}
}

// whyNot says why conn failed; nil if it no longer does. gRPC tells only a call, and a health check spends no token.
func whyNot(ctx context.Context, conn *grpc.ClientConn) error {
	err := conn.Invoke(ctx, "/grpc.health.v1.Health/Check", &call{}, &call{})
	if status.Code(err) != codes.Unavailable {
		return nil
	}
	return errors.New(status.Convert(err).Message())
}

// close ends all connections.
func (t *target) close() error {
	var errs []error
	for _, conn := range t.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}
