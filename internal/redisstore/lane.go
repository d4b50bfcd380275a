package redisstore

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// lane is one goroutine with one connection at a time. It connects, serves until the connection is lost or the master
// is another one, and starts over, until it is told to stop.
type lane struct {
	store     *Store
	address   string // that of the last dial; empty if there was none to dial
	era       *era   // that of conn
	conn      *conn  // nil while there is none
	nextCheck time.Time

	// What follows belongs to the round trip under way, and is kept to be used again.
	calls   []*failure.Call
	batch   []entry
	groups  []group
	replies []reply
	args    []any
	packed  []byte
	asked   asked
	trip    failure.Trip
	owing   bool // trip was begun and not yet ended
}

func (l *lane) run(ctx context.Context) {
	for ctx.Err() == nil {
		l.live(ctx)
	}
}

// live is the life of one connection, and of those that follow it without a gap. A bug in it ends the connection, not
// the lane.
func (l *lane) live(ctx context.Context) {
	defer func() {
		if v := recover(); v != nil {
			l.survived(v)
			l.store.dials.failed(l.address)
			l.store.noConnection(failure.CauseOther)
		}
		l.hold(nil)
	}()
	if c := l.connect(ctx); c != nil {
		l.hold(c)
		l.serve(ctx)
	}
}

// hold replaces the connection.
func (l *lane) hold(c *conn) {
	if l.conn != nil {
		l.conn.close()
	}
	l.conn = c
}

// connect opens and proves a connection, or takes the one that is ready. It returns nil if there is none, after it has
// told everybody why, or if the master is another one before there is any.
func (l *lane) connect(ctx context.Context) *conn {
	s := l.store
	l.era = s.era.Load()
	if c := l.era.take(); c != nil {
		l.address = l.era.address
		return c
	}
	attempt, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.era.over, cancel)()
	start := time.Now()
	c, err := l.dial(attempt)
	if err == nil {
		s.dials.connected(l.address)
		return l.settle(c)
	}
	if attempt.Err() != nil {
		return nil
	}
	s.dials.failed(l.address)
	cause := classify(err)
	s.cfg.Hooks.dialed(time.Since(start), cause)
	s.note(cause, err)
	s.noConnection(cause)
	s.suspect(cause)
	return nil
}

// settle begins the era of the connection's master, unless it has begun. It returns nil if meanwhile the era of another
// one has.
func (l *lane) settle(c *conn) *conn {
	if l.era = l.store.adopt(l.era, l.address); l.era.address != l.address {
		c.close()
		return nil
	}
	return c
}

func (l *lane) dial(ctx context.Context) (*conn, error) {
	target, err := l.target(ctx)
	if err != nil {
		return nil, err
	}
	l.store.dialing(target.Address)
	return open(ctx, target, l.store)
}

// target returns the server to dial, when it may be dialed. It asks anew after it has waited, for the master and the
// credentials may have changed.
func (l *lane) target(ctx context.Context) (Target, error) {
	if l.address == "" { // there was none the last time
		if err := l.store.dials.wait(ctx, ""); err != nil {
			return Target{}, err
		}
	}
	for waited := ""; ; waited = l.address {
		target, err := l.store.resolve(ctx)
		if err != nil {
			l.address = ""
			return Target{}, err
		}
		if l.address = target.Address; waited == l.address {
			return target, nil
		}
		if err := l.store.dials.wait(ctx, l.address); err != nil {
			return Target{}, err
		}
	}
}

// serve works on the connection, and on those that take its place, until none does or ctx ends.
func (l *lane) serve(ctx context.Context) {
	s := l.store
	lost := failure.CauseOther // if it panics
	defer func() {
		s.dials.lost(l.address, time.Since(l.conn.opened))
		s.down(lost)
	}()
	for s.up(); ; s.denials.forgetAll() {
		s.cfg.Hooks.dialed(time.Since(l.conn.opened), failure.CauseNone)
		if lost = l.work(ctx); lost != failure.CauseNone {
			if ctx.Err() == nil {
				s.suspect(lost)
			}
			return
		}
		// The master is another one. There is no gap for whom a connection is ready.
		l.era = s.era.Load()
		next := l.era.take()
		if next == nil {
			lost = failure.CauseClosed
			return
		}
		l.address = l.era.address
		l.hold(next)
	}
}

// vouch tells the breaker that the store works. The first to do so at another master than before says that too.
func (l *lane) vouch() {
	if l.era.vouched.Swap(true) {
		l.store.health.Proved()
		return
	}
	l.store.health.Moved()
}

// work returns what made it stop: why the connection is lost, CauseClosed if ctx ended, CauseNone if the master is
// another one.
func (l *lane) work(ctx context.Context) failure.Cause {
	l.nextCheck = time.Now().Add(Jitter(l.store.cfg.CheckInterval))
	defer context.AfterFunc(l.era.cut, l.conn.sever)()
	var first time.Duration // who is not trusted has to prove at once more than that it can be connected to
	if l.store.health.State() == failure.Closed {
		l.vouch()
		first = l.pause()
	}
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		lost := failure.CauseNone
		select {
		case <-ctx.Done():
			return failure.CauseClosed
		case <-l.era.over.Done():
			return failure.CauseNone
		case <-l.store.queue.wake:
			lost = l.round(l.conn)
		case <-timer.C:
			lost = l.look(ctx)
			timer.Reset(l.pause())
		}
		if lost != failure.CauseNone {
			return lost
		}
	}
}

// pause is the time until the next look. A new master that nobody vouches for yet is looked at often.
func (l *lane) pause() time.Duration {
	if l.era.vouched.Load() {
		return Jitter(l.store.cfg.ProofInterval)
	}
	return Jitter(min(haste, l.store.cfg.ProofInterval))
}

// look asks after the server off the request path: for proof while the breaker is not closed, else now and then for a
// sign of life, so that a dead connection or a demoted master is found before a request pays for it.
func (l *lane) look(ctx context.Context) (lost failure.Cause) {
	c := l.conn
	if l.store.health.State() == failure.Open || !l.era.vouched.Load() {
		err := c.prove(ctx)
		if classify(err) == failure.CauseNoScript { // no round trip brings it back while the breaker lets none through
			err = c.warm(ctx)
		}
		if err == nil {
			l.vouch()
			return failure.CauseNone
		}
		return l.verdict(classify(err), err)
	}
	if time.Now().Before(l.nextCheck) {
		return failure.CauseNone
	}
	l.nextCheck = time.Now().Add(Jitter(l.store.cfg.CheckInterval))
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
