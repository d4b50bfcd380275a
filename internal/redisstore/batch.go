package redisstore

import (
	"time"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/scripts"
)

// entry is one call on its way through a round trip.
type entry struct {
	call  *failure.Call // nil once it is completed
	cause failure.Cause
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
		l.blame(cause)
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
	l.encode()
	s.inFlight.Add(int64(len(l.batch)))
	defer s.inFlight.Add(-int64(len(l.batch)))
	l.sent()
	l.asked = s.denials.asking()
	start := time.Now()
	reply, err := c.decide(l.args)
	took := time.Since(start)
	if err == nil && !l.decode(reply) {
		err = errShape
	}
	if err == nil {
		l.answered(failure.CauseNone)
		s.cfg.Hooks.roundTrip(took, len(l.batch), failure.CauseNone)
		return failure.CauseNone
	}
	cause := classify(err)
	l.blame(cause)
	if cause == forgiven {
		l.alive()
		s.cfg.Hooks.roundTrip(took, len(l.batch), failure.CauseNone)
		return failure.CauseNone
	}
	l.answered(cause)
	s.cfg.Hooks.roundTrip(took, len(l.batch), cause)
	s.denials.forgetAll() // from here on fail modes decide
	return l.verdict(cause, err)
}

// encode makes one command of the whole batch. The keys are passed by pointer, which go-redis reads and nobody copies.
func (l *lane) encode() {
	keys := 0
	l.packed, l.args = l.packed[:0], append(l.args[:0], "evalsha", l.store.sha, 0)
	for i := range l.batch {
		charges := l.batch[i].call.Charges
		l.packed = scripts.AppendRequest(l.packed, charges)
		for j := range charges {
			l.args = append(l.args, &charges[j].Key)
		}
		keys += len(charges)
	}
	l.args[2] = keys
	l.args = append(l.args, l.packed)
}

// decode fills in the results and causes; false if reply is none of the script's.
func (l *lane) decode(reply string) bool {
	for i := range l.batch {
		e := &l.batch[i]
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

// blame gives every call of the batch the same cause.
func (l *lane) blame(c failure.Cause) {
	for i := range l.batch {
		l.batch[i].cause = c
	}
}

// complete ends every call of the batch but those that failed of keep, which stay in it.
func (l *lane) complete(keep failure.Cause) {
	kept := l.batch[:0]
	for i := range l.batch {
		e := l.batch[i]
		switch e.cause {
		case failure.CauseNone:
			l.store.denials.learn(e.call.Charges, e.call.Results, l.asked)
			l.batch[i].call = nil
			e.call.Finish()
		case keep:
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
