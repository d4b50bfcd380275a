package redisstore

import (
	"sync"
	"sync/atomic"
)

// reloads lets one lane bring back a script that all of them miss at once.
type reloads struct {
	mu   sync.Mutex
	done atomic.Uint64
}

// count is taken before a batch is sent, and given to once when the script was found missing.
func (r *reloads) count() uint64 { return r.done.Load() }

// once calls load unless another lane has loaded the script since count returned before. Lanes wait for each other
// here, at most for one socket timeout; callers never do.
func (r *reloads) once(before uint64, load func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count() != before {
		return nil
	}
	if err := load(); err != nil {
		return err
	}
	r.done.Add(1)
	return nil
}
