package topology

import (
	"crypto/rand"
	"fmt"
)

// Login is an account of a Redis server; the zero value logs nobody in.
type Login struct {
	Username, Password string
}

// String hides the password.
func (l Login) String() string { return l.Username }

// GoString hides the password.
func (l Login) GoString() string { return fmt.Sprintf("topology.Login{%q}", l.Username) }

// Secrets are the passwords of the accounts that deploy/redis/*.acl names.
type Secrets struct {
	// Service is that of "ratelimit" on data nodes, SentinelService that of "ratelimit" on Sentinels.
	Service, SentinelService string
	// Replication is that of replicas at their master.
	Replication string
	// Sentinel is that of Sentinels on data nodes, Peer that of Sentinels among each other.
	Sentinel, Peer string
	// Operator is that of the account that may do everything, on both.
	Operator string
}

// NewSecrets makes up a password for each account.
func NewSecrets() *Secrets {
	return &Secrets{
		Service: rand.Text(), SentinelService: rand.Text(), Replication: rand.Text(),
		Sentinel: rand.Text(), Peer: rand.Text(), Operator: rand.Text(),
	}
}

// String hides the passwords.
func (s *Secrets) String() string { return "[secrets]" }

// GoString hides the passwords.
func (s *Secrets) GoString() string { return s.String() }

func (s *Secrets) service() string         { return s.Service }
func (s *Secrets) sentinelService() string { return s.SentinelService }
func (s *Secrets) operator() string        { return s.Operator }
