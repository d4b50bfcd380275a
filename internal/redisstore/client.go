package redisstore

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

var silence = sync.OnceFunc(func() { redis.SetLogger(nobody{}) })

// Silence keeps go-redis from writing to the standard error output by itself, for the whole process: what fails is told
// to whoever asked. NewClient does it, too.
func Silence() { silence() }

type nobody struct{}

// Printf implements the logger of go-redis.
func (nobody) Printf(context.Context, string, ...any) {}

// NewClient returns a client for asking a server things off the request path: one connection at a time, opened by the
// first command; nothing is retried. Every step ends after timeout at the latest, and earlier if the command's context
// does.
func NewClient(t Target, timeout time.Duration) *redis.Client {
	silence()
	options := plainOptions(t, timeout)
	// After as many failed dials as the pool is large, go-redis stops dialing and tries by itself once a second.
	options.PoolSize = 1024
	options.DialTimeout = timeout
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		// The library's own TLS dialer ignores the context.
		dialer := &net.Dialer{Timeout: timeout}
		if t.TLS == nil {
			return dialer.DialContext(ctx, network, address)
		}
		return (&tls.Dialer{NetDialer: dialer, Config: t.TLS}).DialContext(ctx, network, address)
	}
	return redis.NewClient(options)
}

// plainOptions are the settings that every connection of ours shares: one connection, one attempt, nothing in the
// handshake that is not needed.
func plainOptions(t Target, timeout time.Duration) *redis.Options {
	return &redis.Options{
		Network: t.Network, Addr: t.Address, DB: t.DB,
		Username: t.Username, Password: string(t.Password),
		Protocol:              2, // the replies are the same, and nothing has to look out for push messages
		ContextTimeoutEnabled: true,
		ReadTimeout:           timeout,
		WriteTimeout:          timeout,
		MaxRetries:            -1, // a script that timed out may have charged
		DialerRetries:         1,
		PoolSize:              1,
		PipelinePoolSize:      -1,
		ConnMaxIdleTime:       -1,
		DisableIdentity:       true,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
	}
}
