package redisstore

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// backoff spaces the dials of all lanes to an address that does not work, so that neither the address nor the machine
// is flooded. Each address has its own: another one is tried at once.
type backoff struct {
	min, max time.Duration

	mu    sync.Mutex
	bad   map[string]*trouble
	cheer chan struct{} // closed when an address works again: who waits may try
}

// trouble is the past of one address.
type trouble struct {
	failures int
	next     time.Time // no dial before
}

func newBackoff(lowest, highest time.Duration) *backoff {
	return &backoff{min: lowest, max: highest, bad: map[string]*trouble{}, cheer: make(chan struct{})}
}

// wait returns when address may be dialed. Each caller gets a time of its own.
func (b *backoff) wait(ctx context.Context, address string) error {
	delay, cheer := b.reserve(address)
	if delay <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-cheer:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *backoff) reserve(address string) (delay time.Duration, cheer <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.bad[address]
	if t == nil {
		return 0, b.cheer
	}
	now := time.Now()
	at := now
	if t.next.After(now) {
		at = t.next
	}
	t.next = at.Add(b.pause(t.failures))
	return at.Sub(now), b.cheer
}

// failed tells that a connection could not be opened, or broke as soon as it served.
func (b *backoff) failed(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.bad[address]
	if t == nil {
		t = &trouble{}
		b.bad[address] = t
	}
	t.failures++
	if next := time.Now().Add(b.pause(t.failures)); next.After(t.next) {
		t.next = next
	}
}

// connected tells that a connection serves: the other lanes need not wait. What failed before is not forgotten, for
// the connection may break at once.
func (b *backoff) connected(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.bad[address]; t != nil {
		t.next = time.Time{}
	}
	close(b.cheer)
	b.cheer = make(chan struct{})
}

// lost tells that a connection that served for lived broke.
func (b *backoff) lost(address string, lived time.Duration) {
	if lived < b.max {
		b.failed(address)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.bad, address)
}

// pause is the jittered pause after so many failures.
func (b *backoff) pause(failures int) time.Duration {
	d := b.max
	if doublings := failures - 1; doublings < 32 && b.min<<doublings < b.max {
		d = b.min << max(0, doublings)
	}
	return Jitter(d)
}

// Jitter takes up to half of d off at random, so that neither lanes nor processes act in step.
func Jitter(d time.Duration) time.Duration {
	return d - rand.N(d/2+1)
}
