package preflight

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// fewCalls is the least that percentiles are taken of.
const fewCalls = 100

// keyTries is how many keys are tried to find one that a node of a Cluster owns.
const keyTries = 2000

// measure does on every master what takes time: first it watches, then it charges.
func (s *survey) measure(ctx context.Context, f *facts) {
	masters := f.masters()
	if s.setup != Cluster {
		masters = nil
		if n := living(f.node(f.master)); n != nil && n.leads() {
			masters = []*node{n}
		}
	}
	// Many masters share the calls, so that measuring them is no load by itself.
	calls := max(s.cfg.Calls/max(len(masters), 1), min(s.cfg.Calls, fewCalls))
	each(masters, func(i int) {
		n := masters[i]
		if _, isPeer := n.view.self(); s.setup == Cluster && isPeer && !n.ownsSlots() {
			n.missing[partLatency] = "owns no slots"
			n.missing[partWrites] = "owns no slots"
			return
		}
		if s.setup != Standalone {
			s.watchWrites(ctx, n)
		}
		s.measureLatency(ctx, n, calls)
	})
	for _, n := range f.alive() {
		if len(n.latency) == 0 && n.missing[partLatency] == "" {
			n.missing[partLatency] = "not measured: not the master"
		}
	}
}

func (n *node) ownsSlots() bool {
	self, _ := n.view.self()
	return len(self.ranges) > 0
}

// watchWrites reads the offset of the replication stream twice.
func (s *survey) watchWrites(ctx context.Context, n *node) {
	again := &server{address: n.address}
	g := s.visit(ctx, again, false)
	if g == nil {
		n.missing[partWrites] = again.err
		return
	}
	defer g.close()
	var offsets [2]int64
	var at [2]time.Time
	for i := range offsets {
		reply, ok := g.askEither(ctx, partWrites, "info", "replication")
		if !ok {
			n.missing[partWrites] = again.missing[partWrites]
			return
		}
		offsets[i], at[i] = number(lines(reply), "master_repl_offset"), time.Now()
		if i == 0 && !pause(ctx, s.cfg.Watch) {
			n.missing[partWrites] = "there was no time left"
			return
		}
	}
	n.writes = float64(offsets[1]-offsets[0]) / at[1].Sub(at[0]).Seconds()
}

// measureLatency charges a bucket of its own, as slowly as Config.Pace says. A call that fails is a finding about the
// script: it is what a decision would meet.
func (s *survey) measureLatency(ctx context.Context, n *node, calls int) {
	target, err := s.target(n.address, asService, false)
	if err != nil {
		n.missing[partLatency] = reason(err)
		return
	}
	as := newSession(target, "our account", s.cfg.Timeout)
	defer as.close()
	key, err := s.ownKey(ctx, as)
	if err != nil {
		n.missing[partLatency] = reason(err)
		if n.script.runErr == "" {
			n.script.runErr = "a decision fails: " + reason(err)
		}
		return
	}
	args := s.decision(key)
	for range calls {
		start := time.Now()
		if _, err := as.ask(ctx, args...); err != nil {
			n.latency = nil
			n.missing[partLatency] = reason(err)
			return
		}
		n.latency = append(n.latency, time.Since(start))
		if !pause(ctx, s.cfg.Pace) {
			break
		}
	}
	slices.Sort(n.latency)
}

// ownKey makes a first call, which opens the connection as well, and finds a key that the node owns.
func (s *survey) ownKey(ctx context.Context, as *session) (string, error) {
	var err error
	for i := range keyTries {
		key := fmt.Sprint(s.bucket, i)
		_, err = as.ask(ctx, s.decision(key)...)
		if refused := refusal(err); refused == nil || !refused.is("MOVED") {
			return key, err
		}
	}
	return "", err
}

// pause waits; false if there is no time for it.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
