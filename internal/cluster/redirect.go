package cluster

import (
	"net"
	"strings"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// redirect goes on with a call that the shard did not execute.
func (s *Store) redirect(from *shard, c *failure.Call, to redisstore.Redirection) {
	s.counts.redirected(to.Kind)
	switch to.Kind {
	case redisstore.Moved:
		s.suspect()
		if isRefund(c) { // see Store.refund
			c.Fail(to.Cause)
			return
		}
		s.follow(from, c, to)
	case redisstore.Ask:
		s.restless.add(c.Route.Slot)
		if to.Shared { // a neighbour's bucket may be the one that is gone
			s.alone(from, c)
			return
		}
		s.follow(from, c, to)
	case redisstore.TryAgain:
		s.restless.add(c.Route.Slot)
		switch {
		case to.Shared:
			s.alone(from, c)
		case len(c.Charges) > 1: // its buckets are at two nodes, each of which can be asked
			s.scatter(c, byKey)
		default:
			c.Fail(to.Cause)
		}
	case redisstore.ClusterDown:
		s.suspect()
		c.Fail(to.Cause)
	}
}

// alone sends c to the same shard once more, in a command of its own.
func (s *Store) alone(sh *shard, c *failure.Call) {
	c.Route.Alone = true
	sh.store.Submit(c)
}

// follow sends c where the redirection points, if it may get there in time.
func (s *Store) follow(from *shard, c *failure.Call, to redisstore.Redirection) {
	c.Route.Hops++
	if c.Route.Hops > maxHops || time.Until(c.Deadline) < s.cfg.Store.MinRemaining {
		c.Fail(to.Cause)
		return
	}
	sh := s.named(pointed(from.address, to.Address))
	switch {
	case sh == nil:
		c.Fail(to.Cause)
	case sh.breaker.State() != failure.Closed: // probes are for those who come straight
		c.Fail(failure.CauseBreakerOpen)
	default:
		c.Route.Asking = to.Kind == redisstore.Ask
		sh.store.Submit(c)
	}
}

// pointed is the address that a node at from means. One that does not know a host for another node means its own.
func pointed(from, address string) string {
	at := strings.LastIndexByte(address, ':')
	if at < 0 {
		return address
	}
	host, port := strings.Trim(address[:at], "[]"), address[at+1:]
	if host == "" || host == "?" {
		host, _, _ = net.SplitHostPort(from)
	}
	return net.JoinHostPort(host, port)
}

// named returns the shard at the address that a node gave. One that the topology does not show is opened, unless there
// are too many of them; nil then.
func (s *Store) named(address string) *shard {
	address = s.cfg.translate(address)
	if r := s.routes.Load(); r == nil {
		return nil
	} else if sh := r.named[address]; sh != nil {
		return sh
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.routes.Load()
	if r == nil || s.running == nil {
		return nil
	}
	if sh := r.named[address]; sh != nil {
		return sh
	}
	if r.strangers >= maxStrangers {
		return nil
	}
	sh := s.open(address)
	s.routes.Store(r.with(sh))
	return sh
}
