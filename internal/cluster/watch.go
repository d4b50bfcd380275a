package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

const (
	// askedAtOnce is how many nodes are asked for the topology at once.
	askedAtOnce = 6
	// grace is how long the others are waited for once one has answered. What they know is merged the next time.
	grace = 25 * time.Millisecond
	// patience is how long trouble is looked after at full pace; then it is thought to be there to stay.
	patience = time.Minute
)

// Why there is no topology, if no node says it.
var (
	errSilence   = errors.New("cluster: no node answered in time")
	errStrangers = errors.New("cluster: only nodes of another Cluster answered")
)

// watch keeps the topology until ctx ends.
func (s *Store) watch(ctx context.Context, a *askers) {
	var ill time.Time // since when something is wrong; zero: nothing is
	for ctx.Err() == nil {
		started := time.Now()
		switch err := s.reload(ctx, a); {
		case err == nil && s.well():
			ill = time.Time{}
		case ill.IsZero():
			ill = started
		}
		s.rest(ctx, started, ill)
	}
}

// rest waits until the topology must be asked for again: soon if somebody asks for it or something is wrong, but never
// too soon.
func (s *Store) rest(ctx context.Context, started, ill time.Time) {
	pause := s.cfg.PollInterval
	switch {
	case ill.IsZero():
	case time.Since(ill) > patience:
		pause = min(pause, 10*s.cfg.ReloadSpacing)
	default:
		pause = min(pause, s.cfg.ReloadSpacing)
	}
	select {
	case <-time.After(redisstore.Jitter(pause)):
	case <-s.alarm:
		select {
		case <-time.After(time.Until(started.Add(redisstore.Jitter(s.cfg.ReloadSpacing)))):
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
}

// well tells whether every slot has an owner that works.
func (s *Store) well() bool {
	r := s.routes.Load()
	if r == nil {
		return false
	}
	total := 0
	for i, owned := range r.owned() {
		sh := r.shards[i]
		if total += owned; owned > 0 && (sh.breaker.State() != failure.Closed || sh.store.Stats().Connected == 0) {
			return false
		}
	}
	return total == Slots
}

// reload asks several nodes for the topology, and routes by what they say.
func (s *Store) reload(ctx context.Context, a *askers) error {
	s.counts.reloads.Add(1)
	views, err := s.collect(ctx, a)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(views) > 0 {
		if err = nil; !s.install(views) {
			err = errStrangers
		}
	}
	if err != nil {
		s.counts.reloadsFailed.Add(1)
		s.refusal.CompareAndSwap(uint32(failure.CauseNotConnected), uint32(failure.CauseDial))
	}
	if s.cfg.Hooks.Reloaded != nil {
		s.cfg.Hooks.Reloaded(err)
	}
	return err
}

// collect returns what the nodes say that answer in time, and why the first of the others did not.
func (s *Store) collect(ctx context.Context, a *askers) (views []view, trouble error) {
	s.mu.Lock()
	members := s.news.members
	s.mu.Unlock()
	answers, pending := a.ask(ctx, members)
	timer := time.NewTimer(s.cfg.Timeout + grace)
	defer timer.Stop()
	for ; pending > 0; pending-- {
		select {
		case answer := <-answers:
			if answer.err != nil {
				if trouble == nil {
					trouble = fmt.Errorf("cluster: topology: %w", answer.err)
				}
				continue
			}
			if views = append(views, answer.view); len(views) == 1 {
				timer.Reset(grace)
			}
		case <-timer.C:
			pending = 0
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if len(views) == 0 && trouble == nil {
		trouble = errSilence
	}
	return views, trouble
}
