package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/honestlimit/ratelimit/internal/telemetry"
	"github.com/honestlimit/ratelimit/pkg/rls"
)

type serveCmd struct {
	Policies string `required:"" group:"Policies" placeholder:"PATH" help:"Policy file, or directory of *.yaml and *.yml files. Read again when they change, and on SIGHUP."`

	GRPC         string `name:"grpc" group:"gRPC (for Envoy)" default:"127.0.0.1:8081" placeholder:"ADDR" help:"host:port or unix:PATH to answer Envoy on (${default})."`
	GRPCCert     string `name:"grpc-cert" group:"gRPC (for Envoy)" placeholder:"FILE" help:"PEM certificate: speak TLS. Read again when it changes. Envoy must then offer ALPN h2 (alpn_protocols in its UpstreamTlsContext)."`
	GRPCKey      string `name:"grpc-key" group:"gRPC (for Envoy)" placeholder:"FILE" help:"PEM key of --grpc-cert."`
	GRPCClientCA string `name:"grpc-client-ca" group:"gRPC (for Envoy)" placeholder:"FILE" help:"PEM authorities: callers must show a certificate of one of them (mutual TLS)."`
	Deny         string `group:"gRPC (for Envoy)" enum:"grpc_error,over_limit" default:"grpc_error" placeholder:"MODE" help:"How a request is denied while the store cannot decide: grpc_error (Envoy's failure_mode_deny makes the 503) or over_limit (a local reply mapper must make it) (${default})."`

	redisFlags
	RedisLanes int  `group:"Redis" default:"2" placeholder:"N" help:"Connections, each with its own pipeline; from 1 to 16, and more than 4 gain nothing (${default})."`
	DenyCache  bool `group:"Redis" default:"true" negatable:"" help:"Answer for a bucket that Redis has just said denies, for as long as it must deny and at most a second, without asking again (on)."`

	RedisInfoInterval time.Duration `group:"Redis" default:"0s" placeholder:"TIME" help:"How often each master is asked for its INFO, for the ratelimit_redis metrics; 0s for never. The account then needs +info, and +slowlog|len for the length of the slow log (${default})."`

	Budget               time.Duration `group:"Failure" default:"20ms" placeholder:"TIME" help:"The most that the store may hold up one request (${default}). Envoy's filter timeout must be larger."`
	MaxInFlight          int           `group:"Failure" default:"16384" placeholder:"N" help:"Requests that wait for the store at once; more are decided as if it had timed out (${default})."`
	BreakerFailures      int           `group:"Failure" default:"5" placeholder:"N" help:"Failures in a row, of the store and not of requests, that open the circuit breaker (${default})."`
	BreakerQuarantine    time.Duration `group:"Failure" default:"30s" placeholder:"TIME" help:"How long the store is left alone then, at most (${default})."`
	BreakerEarlyEnd      bool          `group:"Failure" default:"true" negatable:"" help:"End the quarantine early once a connection has proved the store (on)."`
	BreakerEarlyEndAfter time.Duration `group:"Failure" default:"500ms" placeholder:"TIME" help:"How soon that may be, doubling while the store flaps (${default})."`

	Admin           string        `group:"Operation" default:"127.0.0.1:9090" placeholder:"ADDR" help:"host:port or unix:PATH of /healthz /readyz /metrics /policies /state (${default})."`
	DrainDelay      time.Duration `group:"Operation" default:"5s" placeholder:"TIME" help:"On SIGTERM, how long to go on answering while health checks fail, so that every Envoy has moved away (${default})."`
	ShutdownTimeout time.Duration `group:"Operation" default:"10s" placeholder:"TIME" help:"How long requests may then take to finish (${default})."`
	LogFormat       string        `group:"Operation" enum:"auto,json,console" default:"auto" placeholder:"FORMAT" help:"json, console, or auto: console on a terminal (${default})."`
	LogLevel        string        `group:"Operation" enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL" help:"debug, info, warn or error (${default})."`
}

// Help implements kong.HelpProvider.
func (serveCmd) Help() string {
	return `Listens at once, whether or not the store is there: each policy says what becomes of its requests meanwhile.
Times are written 20ms, 1.5s or 2m. Each flag can also be set in the environment, as named in brackets.

  # Limits kept in this process, for a trial or a single replica.
  ratelimit serve --policies policies/

  # Limits shared by all replicas. Envoy's filter needs a timeout above the budget, for example 50ms.
  RATELIMIT_REDIS_PASSWORD=... ratelimit serve --policies policies/ --redis redis://redis:6379 --grpc 0.0.0.0:8081

  # Mutual TLS on both sides, the password in a file that may be rotated.
  ratelimit serve --policies policies/ --redis rediss://redis:6380 --redis-ca ca.pem --redis-password-file pw \
      --grpc 0.0.0.0:8081 --grpc-cert tls.crt --grpc-key tls.key --grpc-client-ca ca.pem

Signals: SIGHUP reads the policies again, SIGTERM and SIGINT drain and stop, a second one stops at once.`
}

// Run serves until a signal stops it.
func (c *serveCmd) Run(s *streams) error {
	if err := c.validate(); err != nil {
		return &usageError{command: "serve", err: err}
	}
	log, err := c.logger(s)
	if err != nil {
		return err
	}
	if err := tuneMemory(); err != nil {
		log.Debug().Err(err).Msg("no container's memory limit is known")
	}
	svc, err := newService(c, log)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	return svc.run(signals)
}

func (c *serveCmd) logger(s *streams) (zerolog.Logger, error) {
	format, err := telemetry.ParseFormat(c.LogFormat)
	if err != nil {
		return zerolog.Logger{}, fmt.Errorf("--log-format: %w", err)
	}
	level, err := zerolog.ParseLevel(c.LogLevel)
	if err != nil {
		return zerolog.Logger{}, fmt.Errorf("--log-level: %w", err)
	}
	return telemetry.NewLogger(s.err, format, level), nil
}

// validate reports every flag that makes no sense, by its name.
func (c *serveCmd) validate() error {
	const longest = time.Hour
	return errors.Join(
		between("--budget", c.Budget, time.Millisecond, 10*time.Second),
		between("--max-in-flight", c.MaxInFlight, 1, 1<<20),
		between("--breaker-failures", c.BreakerFailures, 1, 1_000_000),
		between("--breaker-quarantine", c.BreakerQuarantine, time.Millisecond, longest),
		between("--breaker-early-end-after", c.BreakerEarlyEndAfter, time.Millisecond, longest),
		between("--redis-lanes", c.RedisLanes, 1, 16),
		c.validateInfoInterval(),
		between("--drain-delay", c.DrainDelay, 0, longest),
		between("--shutdown-timeout", c.ShutdownTimeout, time.Millisecond, longest),
		c.validateTLS(),
		c.redisFlags.validate(),
	)
}

func between[T cmp.Ordered](flag string, value, low, high T) error {
	if value < low || value > high {
		return fmt.Errorf("%s: is %v, must be from %v to %v", flag, value, low, high)
	}
	return nil
}

func (c *serveCmd) validateInfoInterval() error {
	if c.RedisInfoInterval == 0 {
		return nil
	}
	return between("--redis-info-interval", c.RedisInfoInterval, time.Second, time.Hour)
}

func (c *serveCmd) validateTLS() error {
	if (c.GRPCCert == "") != (c.GRPCKey == "") {
		return errors.New("--grpc-cert, --grpc-key: one of them is missing")
	}
	if c.GRPCClientCA != "" && c.GRPCCert == "" {
		return errors.New("--grpc-client-ca: needs --grpc-cert and --grpc-key")
	}
	return nil
}

func (c *serveCmd) denyMode() rls.Deny {
	deny, err := rls.ParseDeny(c.Deny)
	if err != nil { // the flag's enum is checked before
		panic(err)
	}
	return deny
}
