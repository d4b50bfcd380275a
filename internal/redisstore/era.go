package redisstore

import (
	"context"
	"sync/atomic"
	"time"
)

// readyLife is how long a connection is kept for the lanes: longer than they need to come for it, too short for it to
// grow stale.
const readyLife = time.Second

// era is the time of one master. All lanes decide at the master of the current era: which one that is, is one pointer,
// and two masters are never asked at the same time for longer than a round trip takes.
type era struct {
	address string // empty until the first master is known
	// over ends with the era: nothing new begins on its connections.
	over context.Context
	end  context.CancelFunc
	// cut ends one budget later: what still waits on a connection then, as on a master that hangs, is cut off.
	cut     context.Context
	cutOff  context.CancelFunc
	ready   chan *conn  // a connection that was opened before the era began, for the first lane that comes
	vouched atomic.Bool // somebody has told the breaker that this master works
}

func newEra(address string) *era {
	e := &era{address: address, ready: make(chan *conn, 1)}
	e.over, e.end = context.WithCancel(context.Background())
	e.cut, e.cutOff = context.WithCancel(context.Background())
	return e
}

// finish ends the era. Round trips under way have a budget left to come back.
func (e *era) finish(budget time.Duration) {
	e.end()
	if budget > 0 {
		time.AfterFunc(budget, e.cutOff)
	} else {
		e.cutOff()
	}
	e.discard()
}

// take returns the connection that is ready, nil if there is none.
func (e *era) take() *conn {
	select {
	case c := <-e.ready:
		return c
	default:
		return nil
	}
}

// give leaves c to the lanes for a while. If none of them wants it, all have found their own way.
func (e *era) give(c *conn) {
	select {
	case e.ready <- c:
		time.AfterFunc(readyLife, e.discard)
	default:
		c.close()
	}
}

// discard closes the connection that nobody took.
func (e *era) discard() {
	if c := e.take(); c != nil {
		c.close()
	}
}
