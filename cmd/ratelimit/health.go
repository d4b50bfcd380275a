package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

type healthCmd struct {
	GRPC    string        `name:"grpc" default:"127.0.0.1:8081" placeholder:"ADDR" help:"host:port or unix:PATH of the service (${default})."`
	Cert    string        `placeholder:"FILE" help:"PEM certificate to show to a service with --grpc-client-ca. Implies --tls."`
	Key     string        `placeholder:"FILE" help:"PEM key of --cert."`
	TLS     bool          `name:"tls" help:"Speak TLS, to a service with --grpc-cert. Its certificate is not verified: nothing is told that the health service would not tell anyone."`
	Timeout time.Duration `default:"1s" placeholder:"TIME" help:"How long to wait for the answer (${default})."`
}

// Help implements kong.HelpProvider.
func (healthCmd) Help() string {
	return `Asks a running service over gRPC, as Envoy's health check does: exit code 0 if it serves and 1 if not, for the
health check of a container. A service that drains does not serve.`
}

// Run asks once.
func (c *healthCmd) Run(s *streams) error {
	transport, err := c.transport()
	if err != nil {
		return &usageError{command: "health", err: err}
	}
	conn, err := grpc.NewClient(c.GRPC, grpc.WithTransportCredentials(transport))
	if err != nil {
		return fmt.Errorf("--grpc: %w", err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	got, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		return fmt.Errorf("no answer from %s: %w", c.GRPC, err)
	}
	if got.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("%s is %v", c.GRPC, got.GetStatus())
	}
	_, err = fmt.Fprintln(s.out, "serving")
	return err
}

func (c *healthCmd) transport() (credentials.TransportCredentials, error) {
	if !c.TLS && c.Cert+c.Key == "" {
		return insecure.NewCredentials(), nil
	}
	cfg := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // see the flag's help
	if c.Cert+c.Key == "" {
		return credentials.NewTLS(cfg), nil
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("--cert, --key: %w", err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return credentials.NewTLS(cfg), nil
}
