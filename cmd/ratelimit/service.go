package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"

	"github.com/honestlimit/ratelimit/internal/telemetry"
	"github.com/honestlimit/ratelimit/pkg/emergency"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/pkg/policy"
	"github.com/honestlimit/ratelimit/pkg/rls"
)

// service is serve at work: the parts, wired.
type service struct {
	flags    *serveCmd
	log      zerolog.Logger
	registry *prometheus.Registry
	policies *policy.Source
	backing  *backing
	guard    *failure.Guard

	grpc     *grpc.Server
	health   *health.Server
	drain    context.CancelFunc // ends the streams that would hold up a stop
	admin    *http.Server
	serving  atomic.Bool
	listener struct{ grpc, admin net.Listener }
}

// observers are told what happens to the service as a whole.
type observers struct {
	logger zerolog.Logger
	log    *telemetry.Events
	rpcs   *telemetry.RPCs
}

// panicked counts and logs a recovered bug.
func (o *observers) panicked(value any, stack []byte) {
	o.rpcs.Panicked()
	o.log.Panicked(value, stack)
}

// newService wires the parts, and loads the policies. It listens on nothing and starts nothing.
func newService(flags *serveCmd, log zerolog.Logger) (*service, error) {
	s := &service{flags: flags, log: log, registry: prometheus.NewRegistry()}
	telemetry.WatchProcess(s.registry, build())
	events := &observers{logger: log, log: telemetry.NewEvents(log), rpcs: telemetry.NewRPCs(s.registry)}
	var err error
	if s.backing, err = flags.openStore(s.registry, events); err != nil {
		return nil, err
	}
	limiter := emergency.New()
	metered := telemetry.NewEmergency(s.registry, limiter)
	if s.guard, err = s.newGuard(metered); err != nil {
		return nil, err
	}
	decisions := telemetry.NewDecisions(s.registry, s.guard)
	if err := s.loadPolicies(events, limiter, metered, decisions); err != nil {
		return nil, err
	}
	answerer, err := s.newAnswerer(decisions)
	if err != nil {
		return nil, err
	}
	if err := s.newGRPC(answerer, events); err != nil {
		return nil, err
	}
	s.newAdmin()
	return s, nil
}

func (s *service) newGuard(e failure.Emergency) (*failure.Guard, error) {
	return failure.NewGuard(s.backing.store, s.backing.breaker, e, failure.GuardConfig{
		Budget: s.flags.Budget, MaxInFlight: s.flags.MaxInFlight,
	})
}

// newAnswerer puts the log of denials around decisions, and both behind Envoy's protocol.
func (s *service) newAnswerer(decisions *telemetry.Decisions) (*rls.Server, error) {
	denials := telemetry.NewDenials(s.log, decisions)
	return rls.New(s.policies, denials, rls.Config{
		Deny:        s.flags.denyMode(),
		OnUnmatched: decisions.Unmatched,
		OnTooDear: func(charges []limit.Charge, d failure.Decision) {
			decisions.Count(charges, d)
			denials.Log(charges, d)
		},
	})
}

// configurable is told which endpoints there are.
type configurable interface {
	Configure(endpoints []*limit.Endpoint)
}

// loadPolicies loads the policies for the first time, and has parts told of every later change.
func (s *service) loadPolicies(events *observers, parts ...configurable) error {
	configure := func() {
		endpoints := endpointsOf(s.policies.Current())
		for _, p := range parts {
			p.Configure(endpoints)
		}
	}
	var err error
	s.policies, err = policy.NewSource(s.flags.Policies, policy.SourceConfig{OnReload: func(r policy.Report) {
		configure()
		events.log.Reloaded(r)
	}})
	if err != nil {
		return fmt.Errorf("--policies: %w", err)
	}
	if err := s.policies.Load(); err != nil {
		return fmt.Errorf("--policies: nothing is served while the policies have faults:\n%w", err)
	}
	configure()
	telemetry.WatchPolicies(s.registry, s.policies.Status)
	return nil
}

func endpointsOf(set *policy.Set) []*limit.Endpoint {
	var endpoints []*limit.Endpoint
	for _, name := range set.Domains() {
		for _, p := range set.Domain(name).Policies() {
			endpoints = append(endpoints, &p.Endpoint)
		}
	}
	return endpoints
}

// run serves until a signal, or until a listener fails. When it returns nothing of the service runs any more.
func (s *service) run(signals <-chan os.Signal) error {
	if err := s.listen(); err != nil {
		return err
	}
	background, stop := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	for _, work := range append(s.backing.work, s.policies.Watch) {
		workers.Go(func() { work(background) })
	}
	failed := s.serve(&workers)
	s.announce()
	err := s.await(signals, failed)
	s.stop(signals)
	stop()
	workers.Wait()
	s.log.Info().Msg("stopped")
	return err
}

// await returns when the service must stop.
func (s *service) await(signals <-chan os.Signal, failed <-chan error) error {
	for {
		select {
		case err := <-failed:
			s.log.Error().Err(err).Msg("a listener failed")
			return err
		case got := <-signals:
			if got == syscall.SIGHUP {
				s.policies.Reload()
				continue
			}
			s.log.Info().Stringer("signal", got).Msg("stopping")
			return nil
		}
	}
}
