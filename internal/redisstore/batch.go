package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// entry is one call on its way through a round trip.
type entry struct {
	call  *failure.Call // nil once it is completed
	cmd   *redis.IntSliceCmd
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
		clear(l.cmds)
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
		for i := range l.batch {
			l.batch[i].cause = cause
		}
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
	l.encode(c.sha)
	s.inFlight.Add(int64(len(l.batch)))
	defer s.inFlight.Add(-int64(len(l.batch)))
	l.sent()
	start := time.Now()
	err := c.exec(l.cmds)
	took := time.Since(start)
	genuine, worst, lost := l.decode(err, forgiven)
	if genuine == 0 && worst == failure.CauseNone {
		l.alive()
	} else {
		l.answered(worst)
	}
	if worst != failure.CauseNone {
		s.note(worst, l.lastErr)
	}
	s.cfg.Hooks.roundTrip(took, len(l.batch), worst)
	return lost
}

// encode makes a command of each call.
func (l *lane) encode(sha string) {
	l.cmds = l.cmds[:0]
	for i := range l.batch {
		charges := l.batch[i].call.Charges
		args := make([]any, 0, 3+6*len(charges))
		args = append(args, "evalsha", sha, len(charges))
		for j := range charges {
			args = append(args, charges[j].Key)
		}
		for j := range charges {
			n := &charges[j].Limit
			args = append(args, uint8(n.Algorithm), n.Capacity, n.Refill, n.Period, charges[j].Cost)
		}
		l.batch[i].cmd = redis.NewIntSliceCmd(context.Background(), args...)
		l.cmds = append(l.cmds, l.batch[i].cmd)
	}
}

// decode fills in the results and causes. It returns the number of decisions, the first failure that is not
// forgiven, and why the connection is lost, CauseNone if it is not.
func (l *lane) decode(exec error, forgiven failure.Cause) (genuine int, worst, lost failure.Cause) {
	for i := range l.batch {
		e := &l.batch[i]
		err := e.err(exec)
		e.cause = classify(err)
		if e.cause == failure.CauseNone {
			genuine++
			continue
		}
		if e.cause != forgiven && worst == failure.CauseNone {
			worst, l.lastErr = e.cause, err
		}
		if !isReply(err) || drops(e.cause) {
			lost = e.cause
		}
	}
	return genuine, worst, lost
}

// err is what went wrong with one call of a pipeline that ended with exec.
func (e *entry) err(exec error) error {
	err := e.cmd.Err()
	if err == nil && exec != nil && !isReply(exec) && len(e.cmd.Val()) == 0 {
		return exec
	}
	if err == nil && !read(e.cmd.Val(), e.call.Results) {
		return errShape
	}
	return err
}

// read puts the script's reply into results, as decide.lua documents it; false if it is no such reply.
func read(reply []int64, results []limit.Result) bool {
	if len(reply) != 4*len(results) {
		return false
	}
	for i := range results {
		allowed, remaining, retry, reset := reply[4*i], reply[4*i+1], reply[4*i+2], reply[4*i+3]
		if allowed != 0 && allowed != 1 || remaining < 0 || retry < -1 || reset < 0 {
			return false
		}
		results[i] = limit.Result{
			Allowed: allowed == 1, Remaining: remaining, RetryAfter: micros(retry), ResetAfter: micros(reset),
		}
		if retry < 0 {
			results[i].RetryAfter = limit.Never
		}
	}
	return true
}

func micros(n int64) time.Duration {
	return time.Duration(min(n, int64(limit.Forever/time.Microsecond))) * time.Microsecond
}

// complete ends every call of the batch but those that failed of keep, which stay in it.
func (l *lane) complete(keep failure.Cause) {
	kept := l.batch[:0]
	for i := range l.batch {
		e := l.batch[i]
		switch e.cause {
		case failure.CauseNone:
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
