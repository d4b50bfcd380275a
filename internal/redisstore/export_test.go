package redisstore

// What tests of the package's own parts need.
var (
	Classify   = classify
	NewBackoff = newBackoff
	ErrLoad    = errLoad
	ErrReplica = errReplica
)

// Reserve is what wait waits for.
func (b *backoff) Reserve(address string) (delay int64) {
	d, _ := b.reserve(address)
	return int64(d)
}

// Failed, Connected and Lost tell a back-off what happened.
var (
	Failed    = (*backoff).failed
	Connected = (*backoff).connected
	Lost      = (*backoff).lost
	Wait      = (*backoff).wait
)
