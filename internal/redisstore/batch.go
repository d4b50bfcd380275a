package redisstore

import (
	"cmp"
	"time"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/scripts"
)

// entry is one call on its way through a round trip.
type entry struct {
	call       *failure.Call // nil once it is completed, or somebody else's
	cause      failure.Cause
	redirected *Redirection // nil unless the server sent it elsewhere
}

// round takes what is queued, sends it and completes every call of it, whatever happens. A bug fails the calls at
// hand, and no others, and costs the connection, whose state nobody knows then.
func (l *lane) round(c *conn) (lost failure.Cause) {
	s := l.store
	l.calls = s.queue.take(l.calls[:0], s.cfg.MaxBatch)
	l.batch = l.batch[:0]
	for _, call := range l.calls {
		l.batch = append(l.batch, entry{call: call})
	}
	defer func() {
		if v := recover(); v != nil {
			l.survived(v)
			l.panicCalls(v)
			lost = failure.CauseOther
		}
		clear(l.calls) // what was completed belongs to others
		clear(l.batch)
		clear(l.args)
		clear(l.groups)
		clear(l.replies)
	}()
	before := s.reloads.count()
	l.dropLate()
	if len(l.batch) == 0 {
		return failure.CauseNone
	}
	lost = l.exchange(c, failure.CauseNoScript)
	l.complete(failure.CauseNoScript)
	if len(l.batch) == 0 {
		return lost
	}
	if lost == failure.CauseNone {
		lost = l.again(c, before)
	}
	l.complete(failure.CauseNone)
	return lost
}

// again sends the calls that met a missing script once more, after one lane has loaded it for all.
func (l *lane) again(c *conn, before uint64) (lost failure.Cause) {
	s := l.store
	err := s.reloads.once(before, func() error {
		err := l.ask(c.load)
		s.cfg.Hooks.reloaded(classify(err))
		return err
	})
	if err != nil {
		cause := classify(err)
		blame(l.batch, cause)
		return l.verdict(cause, err)
	}
	l.dropLate()
	if len(l.batch) == 0 {
		return failure.CauseNone
	}
	return l.exchange(c, failure.CauseNone)
}

// dropLate fails the calls that could not be answered in time any more: sending them would charge for nobody.
func (l *lane) dropLate() {
	latest := time.Now().Add(l.store.cfg.MinRemaining)
	kept := l.batch[:0]
	dropped := 0
	for _, e := range l.batch {
		if e.call.Deadline.Before(latest) {
			e.call.Fail(failure.CauseDropped)
			dropped++
			continue
		}
		kept = append(kept, e)
	}
	clear(l.batch[len(kept):])
	l.batch = kept
	l.store.cfg.Hooks.dropped(failure.CauseDropped, dropped)
}

// exchange makes one round trip with the batch and finds out what became of each call, but completes none. A cause
// that is forgiven is no evidence against the store.
func (l *lane) exchange(c *conn, forgiven failure.Cause) (lost failure.Cause) {
	s := l.store
	l.group()
	l.encode()
	s.inFlight.Add(int64(len(l.batch)))
	defer s.inFlight.Add(-int64(len(l.batch)))
	l.sent()
	l.asked = s.denials.asking()
	start := time.Now()
	replies := l.send(c)
	took := time.Since(start)
	worst, genuine := failure.CauseNone, false
	for i := range replies {
		err := l.read(&l.groups[i], replies[i])
		if err == nil {
			genuine = genuine || !l.groups[i].redirected()
			continue
		}
		cause := classify(err)
		blame(l.groups[i].entries, cause)
		if cause == forgiven {
			continue
		}
		worst = cmp.Or(worst, cause)
		lost = cmp.Or(lost, l.verdict(cause, err))
	}
	switch {
	case worst != failure.CauseNone:
		l.answered(worst)
		s.denials.forgetAll() // from here on fail modes decide
	case genuine:
		l.answered(failure.CauseNone)
	default:
		l.alive()
	}
	s.cfg.Hooks.roundTrip(took, len(l.batch), worst)
	return lost
}

// read finds out what a reply means for the calls of a group. It returns an error if none of them was decided, and none
// is to be redirected.
func (l *lane) read(g *group, r reply) error {
	if r.err == nil {
		if !decode(g.entries, r.text) {
			return errShape
		}
		return nil
	}
	if l.store.cfg.Redirect == nil {
		return r.err
	}
	elsewhere := redirection(r.err)
	if elsewhere == nil {
		return r.err
	}
	elsewhere.Shared = len(g.entries) > 1
	for i := range g.entries {
		g.entries[i].cause, g.entries[i].redirected = elsewhere.Cause, elsewhere
	}
	return nil
}

// decode fills in the results and causes; false if reply is none of the script's.
func decode(entries []entry, reply string) bool {
	reply, at, ok := scripts.ReadTime(reply)
	if !ok {
		return false
	}
	for i := range entries {
		e := &entries[i]
		e.call.At = at
		var reading scripts.Reading
		switch reply, reading = scripts.ReadResults(reply, e.call.Results); reading {
		case scripts.Decided:
			e.cause = failure.CauseNone
		case scripts.Unreadable:
			e.cause = failure.CauseScript
		case scripts.Malformed:
			return false
		}
	}
	return reply == ""
}

// blame gives all of the calls the same cause.
func blame(entries []entry, c failure.Cause) {
	for i := range entries {
		entries[i].cause = c
	}
}

// complete ends every call of the batch, or hands it to whom a redirected one goes to, but those that failed of keep,
// which stay in it.
func (l *lane) complete(keep failure.Cause) {
	kept := l.batch[:0]
	for i := range l.batch {
		e := l.batch[i]
		switch {
		case e.redirected != nil:
			l.batch[i].call = nil
			l.store.cfg.Redirect(e.call, *e.redirected)
		case e.cause == failure.CauseNone:
			l.store.denials.learn(e.call.Charges, e.call.Results, l.asked)
			l.batch[i].call = nil
			e.call.Finish()
		case e.cause == keep:
			kept = append(kept, e)
		default:
			l.batch[i].call = nil
			e.call.Fail(e.cause)
		}
	}
	clear(l.batch[len(kept):])
	l.batch = kept
}

// panicCalls completes what is left of the batch with a bug.
func (l *lane) panicCalls(value any) {
	for _, e := range l.batch {
		if e.call != nil {
			e.call.Panic(value)
		}
	}
}
