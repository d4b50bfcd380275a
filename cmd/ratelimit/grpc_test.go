package main

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"

	"github.com/honestlimit/ratelimit/internal/telemetry"
	"github.com/honestlimit/ratelimit/pkg/rls"
)

// counting counts the connections that a listener accepts.
type counting struct {
	*bufconn.Listener
	accepted atomic.Int64
}

func (c *counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.accepted.Add(1)
	}
	return conn, err
}

// Envoys ping an idle connection every 10 s. gRPC takes that for abuse unless it is told otherwise. After about five
// minutes a connection is replaced, so that load spreads over new replicas, and no request notices.
func TestGRPC_ToleratesPingsAndRenewsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{flags: &serveCmd{}, log: zerolog.Nop()}
		events := &observers{log: telemetry.NewEvents(s.log), rpcs: telemetry.NewRPCs(prometheus.NewRegistry())}
		if err := s.newGRPC(&rls.Server{}, events); err != nil {
			t.Fatal(err)
		}
		listener := &counting{Listener: bufconn.Listen(1 << 16)}
		var serving sync.WaitGroup
		serving.Go(func() {
			if err := s.grpc.Serve(listener); err != nil {
				t.Error(err)
			}
		})
		defer serving.Wait()
		defer s.grpc.Stop()
		conn, err := grpc.NewClient("passthrough:///buffer",
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listener.Dial() }),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, PermitWithoutStream: true}))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		start := time.Now()
		for _, step := range []struct {
			at          time.Duration
			connections int64
		}{{0, 1}, {4 * time.Minute, 1}, {6 * time.Minute, 2}} {
			time.Sleep(step.at - time.Since(start))
			if _, err := grpc_health_v1.NewHealthClient(conn).Check(
				t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
				t.Errorf("after %v: %v", step.at, err)
			}
			if got := listener.accepted.Load(); got != step.connections {
				t.Errorf("after %v: %d connections, want %d", step.at, got, step.connections)
			}
		}
	})
}
