package rls

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/pkg/policy"
)

// Policies gives the policies in force.
//
// Current must not block, and a set it returned must never change. It may return nil while there are none, which
// makes this replica answer UNAVAILABLE.
type Policies interface {
	Current() *policy.Set
}

// Decider decides a request.
//
// Decide gets at least one charge, all with distinct keys, and as many results. It must always return a decision,
// must fill the results unless the decision is degraded, and must keep neither slice after it returned.
type Decider interface {
	Decide(ctx context.Context, charges []limit.Charge, results []limit.Result) failure.Decision
}

// Server answers ShouldRateLimit.
type Server struct {
	policies Policies
	decider  Decider
	cfg      Config
	words    vocabulary
	views    atomic.Pointer[viewCache]
	plans    sync.Pool // of *plan
}

var _ ratelimitv3.RateLimitServiceServer = (*Server)(nil)

// New returns a Server that looks requests up in policies and has them decided by decider.
func New(policies Policies, decider Decider, cfg Config) (*Server, error) {
	if policies == nil || decider == nil {
		return nil, errors.New("rls: New needs policies and a decider")
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{policies: policies, decider: decider, cfg: cfg.withDefaults(), words: newVocabulary()}
	s.plans.New = func() any { return &plan{server: s} }
	return s, nil
}

// ShouldRateLimit decides one request of an Envoy. Its errors are INVALID_ARGUMENT for a malformed request, which
// names the field but never its value; FAILED_PRECONDITION for a request denied because the store cannot decide,
// unless Config.Deny says otherwise; UNAVAILABLE while there are no policies at all.
//
// A gRPC server that was set up by Register and ServerCodec takes a shorter way, without the generated messages.
func (s *Server) ShouldRateLimit(
	ctx context.Context, in *ratelimitv3.RateLimitRequest,
) (*ratelimitv3.RateLimitResponse, error) {
	text, err := proto.Marshal(in)
	if err != nil {
		return nil, invalid("request", "cannot be encoded")
	}
	p := s.plan()
	if err := s.answer(ctx, p, string(text)); err != nil {
		p.free()
		return nil, err
	}
	out := &ratelimitv3.RateLimitResponse{}
	err = proto.Unmarshal(p.out, out)
	p.free()
	return out, err
}

func (s *Server) plan() *plan { return s.plans.Get().(*plan) }

// free returns p to its server. After a panic it is left to the collector instead: a decider that failed half-way may
// still write to it.
func (p *plan) free() {
	p.reset()
	p.server.plans.Put(p)
}

// answer decides the encoded request and encodes the answer into p.
func (s *Server) answer(ctx context.Context, p *plan, text string) error {
	if err := p.parse(text); err != nil {
		return err
	}
	set := s.policies.Current()
	if set == nil {
		return status.Error(codes.Unavailable, "no policies are loaded yet")
	}
	if err := p.match(set, s.viewsOf(set)); err != nil {
		return err
	}
	return s.respond(p, s.decide(ctx, p))
}

// decide has the plan's charges decided, unless the plan alone settles the request.
func (s *Server) decide(ctx context.Context, p *plan) failure.Decision {
	if len(p.charges) == 0 {
		s.cfg.OnUnmatched(p.configured)
		return failure.Decision{Reason: failure.Allowed, Cause: failure.CauseUnmatched, Allowed: true}
	}
	if p.tooDear != nobody {
		d := failure.Decision{
			Reason: failure.RateLimited, Cause: failure.CauseCostAboveMax, Governing: p.tooDear,
		}
		s.cfg.OnTooDear(p.charges, d)
		return d
	}
	return s.decider.Decide(ctx, p.charges, p.results)
}

// viewsOf returns the cache of views that belongs to set. A new set starts a new cache, so that the policies of an
// old one are not kept alive.
func (s *Server) viewsOf(set *policy.Set) *viewCache {
	c := s.views.Load()
	if c != nil && c.set == set {
		return c
	}
	fresh := &viewCache{set: set}
	s.views.Store(fresh)
	return fresh
}
