package redisstore

import (
	"context"
	"crypto/tls"
)

// Resolver says where the master is. It is asked before every dial, by several lanes at once, off the request path.
//
// Resolve may wait until ctx ends. It must never name a server that it knows to be a replica; that the server is a
// master is verified all the same.
type Resolver interface {
	Resolve(ctx context.Context) (Target, error)
}

// Target is a server and what it takes to be let in.
type Target struct {
	// Network is "tcp" or "unix".
	Network string
	// Address is host:port, or the path of a socket.
	Address string
	// Username and Password are empty if the server asks for none.
	Username string
	Password Secret
	// DB is the database's number.
	DB int
	// TLS is nil for plain text.
	TLS *tls.Config
}

// Secret is a string that never shows itself in logs or errors.
type Secret string

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[secret]"
}

// GoString hides the secret.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
