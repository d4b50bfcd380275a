package redisstore

import (
	"sync"
	"sync/atomic"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// queue is the bounded line of calls in front of the lanes. Its lock is never held across anything that waits.
type queue struct {
	// wake has a token while there may be calls that no lane has been woken for.
	wake chan struct{}

	refusing atomic.Uint32 // the failure.Cause of every push, CauseNone: it is open; written under mu

	mu     sync.Mutex
	ring   []*failure.Call
	head   int
	count  int
	closed bool
}

func newQueue(size int) *queue {
	return &queue{wake: make(chan struct{}, 1), ring: make([]*failure.Call, size)}
}

// push queues c, or returns why not.
func (q *queue) push(c *failure.Call) failure.Cause {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cause := q.refusal(); cause != failure.CauseNone {
		return cause
	}
	if q.count == len(q.ring) {
		return failure.CauseQueueFull
	}
	q.ring[(q.head+q.count)%len(q.ring)] = c
	q.count++
	q.signal()
	return failure.CauseNone
}

// take appends up to most calls to into, oldest first, and wakes another lane if any are left.
func (q *queue) take(into []*failure.Call, most int) []*failure.Call {
	q.mu.Lock()
	defer q.mu.Unlock()
	for ; q.count > 0 && most > 0; most-- {
		into = append(into, q.ring[q.head])
		q.ring[q.head] = nil
		q.head = (q.head + 1) % len(q.ring)
		q.count--
	}
	if q.count > 0 {
		q.signal()
	}
	return into
}

// open lets calls in again, unless the queue was closed.
func (q *queue) open() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.refusing.Store(uint32(failure.CauseNone))
	}
}

// refuse turns every call away with c, and returns those that were waiting.
func (q *queue) refuse(c failure.Cause) []*failure.Call {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.refusing.Store(uint32(c))
	}
	return q.drain()
}

// close turns every call away for ever, and returns those that were waiting.
func (q *queue) close() []*failure.Call {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.refusing.Store(uint32(failure.CauseClosed))
	return q.drain()
}

// refusal is what a push fails of now, CauseNone unless none is let in. It never blocks.
func (q *queue) refusal() failure.Cause { return failure.Cause(q.refusing.Load()) }

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}

func (q *queue) drain() []*failure.Call {
	out := make([]*failure.Call, 0, q.count)
	for ; q.count > 0; q.count-- {
		out = append(out, q.ring[q.head])
		q.ring[q.head] = nil
		q.head = (q.head + 1) % len(q.ring)
	}
	return out
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
