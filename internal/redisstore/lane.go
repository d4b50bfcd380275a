package redisstore

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// lane is one goroutine with one connection at a time. It connects, serves until the connection is lost, and starts
// over, until it is told to stop.
type lane struct {
	store     *Store
	address   string // that of the last dial
	conn      *conn  // nil while there is none
	nextCheck time.Time

	// What follows belongs to the round trip under way, and is kept to be used again.
	calls  []*failure.Call
	batch  []entry
	args   []any
	packed []byte
	asked  asked
	trip   failure.Trip
	owing  bool // trip was begun and not yet ended
}

func (l *lane) run(ctx context.Context) {
	for ctx.Err() == nil {
		l.live(ctx)
	}
}

// live is the life of one connection. A bug in it ends the connection, not the lane.
func (l *lane) live(ctx context.Context) {
	defer func() {
		if v := recover(); v != nil {
			l.survived(v)
			l.store.dials.failed(l.address)
			l.store.noConnection(failure.CauseOther)
		}
		if l.conn != nil {
			l.conn.close()
			l.conn = nil
		}
	}()
	if l.conn = l.connect(ctx); l.conn != nil {
		l.serve(ctx, l.conn)
	}
}

// connect opens and proves a connection. It returns nil if there is none, after it has told everybody why.
func (l *lane) connect(ctx context.Context) *conn {
	s := l.store
	if s.dials.wait(ctx, l.address) != nil {
		return nil
	}
	start := time.Now()
	c, err := l.dial(ctx)
	if err == nil {
		s.dials.connected(l.address)
		return c
	}
	s.dials.failed(l.address)
	if ctx.Err() != nil {
		return nil
	}
	cause := classify(err)
	s.cfg.Hooks.dialed(time.Since(start), cause)
	s.note(cause, err)
	s.noConnection(cause)
	return nil
}

func (l *lane) dial(ctx context.Context) (*conn, error) {
	target, err := l.store.resolver.Resolve(ctx)
	if err != nil {
		l.address = ""
		return nil, fmt.Errorf("%w: %w", errResolve, err)
	}
	l.address = target.Address
	l.store.dialing(target.Address)
	return open(ctx, target, l.store)
}

// serve works on c until it is lost or ctx ends.
func (l *lane) serve(ctx context.Context, c *conn) {
	s := l.store
	lost := failure.CauseOther // if it panics
	defer func() {
		s.dials.lost(l.address, time.Since(c.opened))
		s.down(lost)
	}()
	s.up()
	s.health.Proved()
	s.cfg.Hooks.dialed(time.Since(c.opened), failure.CauseNone)
	lost = l.work(ctx, c)
}

// work returns what made it stop: why the connection is lost, or CauseClosed.
func (l *lane) work(ctx context.Context, c *conn) failure.Cause {
	cfg := &l.store.cfg
	l.nextCheck = time.Now().Add(jitter(cfg.CheckInterval))
	timer := time.NewTimer(jitter(cfg.ProofInterval))
	defer timer.Stop()
	for {
		lost := failure.CauseNone
		select {
		case <-ctx.Done():
			return failure.CauseClosed
		case <-l.store.queue.wake:
			lost = l.round(c)
		case <-timer.C:
			lost = l.look(ctx, c)
			timer.Reset(jitter(cfg.ProofInterval))
		}
		if lost != failure.CauseNone {
			return lost
		}
	}
}

// look asks after the server off the request path: for proof while the breaker is open, else now and then for a sign
// of life, so that a dead connection or a demoted master is found before a request pays for it.
func (l *lane) look(ctx context.Context, c *conn) (lost failure.Cause) {
	if l.store.health.State() == failure.Open {
		err := c.prove(ctx)
		if classify(err) == failure.CauseNoScript { // no round trip brings it back while the breaker lets none through
			err = c.warm(ctx)
		}
		if err == nil {
			l.store.health.Proved()
			return failure.CauseNone
		}
		return l.verdict(classify(err), err)
	}
	if time.Now().Before(l.nextCheck) {
		return failure.CauseNone
	}
	l.nextCheck = time.Now().Add(jitter(l.store.cfg.CheckInterval))
	err := l.ask(c.check)
	return l.verdict(classify(err), err)
}

// ask makes a round trip that decides nothing.
func (l *lane) ask(do func() error) error {
	l.sent()
	err := do()
	if err != nil {
		l.answered(classify(err))
		return err
	}
	l.alive()
	return nil
}

// verdict tells whether err ends the connection: CauseNone if not.
func (l *lane) verdict(c failure.Cause, err error) (lost failure.Cause) {
	if err == nil {
		return failure.CauseNone
	}
	l.store.note(c, err)
	if (isReply(err) || c == failure.CauseDeadline) && !drops(c) {
		return failure.CauseNone
	}
	return c
}

func (l *lane) sent() {
	l.trip, l.owing = l.store.health.Sent(), true
}

func (l *lane) answered(c failure.Cause) {
	l.store.health.Answered(l.trip, c)
	l.owing = false
}

func (l *lane) alive() {
	l.store.health.Alive(l.trip)
	l.owing = false
}

// survived reports a bug, and ends the round trip it happened in: a bug is no evidence about the store.
func (l *lane) survived(value any) {
	defer func() { _ = recover() }() // the bug may be in what is called here; it was seen once already
	l.store.note(failure.CauseOther, fmt.Errorf("redisstore: panic: %v", value))
	if l.owing {
		l.owing = false
		l.store.health.Alive(l.trip)
	}
	l.store.cfg.Hooks.panicked(value, debug.Stack())
}
