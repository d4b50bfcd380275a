package redisstore

import "github.com/honestlimit/ratelimit/scripts"

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

// DenyCache is the cache without a store around it.
type DenyCache = denyCache

// NewDenyCache, and what is done to a cache.
var (
	NewDenyCache = newDenyCache
	Asking       = (*denyCache).asking
	Empty        = (*denyCache).empty
	Deny         = (*denyCache).deny
	Learn        = (*denyCache).learn
	ForgetAll    = (*denyCache).forgetAll
	CacheStats   = (*denyCache).stats
)

// The bounds of a cache.
const (
	DenialLife    = denialLife
	DenyCacheSize = denyCacheSize
)

// DecideSHA is the name of the script in Redis.
func DecideSHA() string { return sha1Hex(scripts.Decide()) }
