package topology

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// MasterName is what the Sentinels of this package call the master.
const MasterName = "mymaster"

// None stands for a number of zero in a Config, where 0 is the default.
const None = -1

// Config says what to start. Dir is required; the zero value of everything else is a healthy default.
type Config struct {
	// Dir takes configuration files and logs; it is made if it is not there. It stays after Close.
	Dir string
	// Server is the program, run as a Sentinel too; the default is redis-server on PATH.
	Server string
	// StartTimeout is how long a set may take to become healthy; the default is 60 s.
	StartTimeout time.Duration

	// Masters are those of a Cluster; the default is 3, which is the least.
	Masters int
	// Replicas are the master's, 2 by default, or each master's in a Cluster, 1 by default. None means none.
	Replicas int
	// Sentinels watch the master; the default is 3.
	Sentinels int
	// Quorum is how many of them must miss the master; the default is their majority.
	Quorum int

	// DownAfter is how long the master is silent before a Sentinel misses it; the default is 1500 ms. A Sentinel
	// reconnects once a second: with less patience, it may take its first second with a new master for silence.
	DownAfter time.Duration
	// FailoverTimeout is Sentinel's; the default is 10 s.
	FailoverTimeout time.Duration
	// NodeTimeout is a Cluster's; the default is 1 s.
	NodeTimeout time.Duration
	// MinReplicas is min-replicas-to-write. The default is that of deploy/redis: 1 with two replicas or more under
	// Sentinels, else none, because the loss of the only one would stop the master.
	MinReplicas int

	// RedisLines are put at the end of every data node's configuration, where they override what stands above.
	RedisLines []string
	// SentinelLines are put at the end of every Sentinel's.
	SentinelLines []string
	// NodeLines are put at the end of the configuration of the node with that name, such as "redis-1".
	NodeLines map[string][]string

	// Secrets turn on the accounts of deploy/redis/*.acl; nil lets anybody do everything without a password.
	Secrets *Secrets
	// TLS makes every node speak it, and nothing else; nil is plain text.
	TLS *TLS
	// Gated puts a gate in front of every node, so that Network can cut and slow down connections. Linux only: nodes
	// are told apart by their source address in 127.0.0.0/8. The gate of a dead node accepts connections, and resets
	// them at once.
	Gated bool
	// Unchecked returns once every process answers, without waiting for health: for sets that are meant to be sick.
	Unchecked bool
}

// Validate returns all faults at once.
func (c Config) Validate() error {
	var errs []error
	if c.Dir == "" {
		errs = append(errs, errors.New("topology: a directory is required"))
	}
	for _, n := range []struct {
		name         string
		value, least int
	}{
		{"masters", c.Masters, 0},
		{"replicas", c.Replicas, None},
		{"sentinels", c.Sentinels, 0},
		{"quorum", c.Quorum, 0},
		{"minimum of replicas", c.MinReplicas, None},
	} {
		if n.value < n.least {
			errs = append(errs, fmt.Errorf("topology: %s must be at least %d", n.name, n.least))
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"start timeout", c.StartTimeout},
		{"down-after", c.DownAfter},
		{"failover timeout", c.FailoverTimeout},
		{"node timeout", c.NodeTimeout},
	} {
		if d.value < 0 || d.value%time.Millisecond != 0 {
			errs = append(errs, fmt.Errorf("topology: %s must be whole milliseconds", d.name))
		}
	}
	return errors.Join(errs...)
}

// withDefaults fills in what does not depend on the kind of the set, but for replicas.
func (c Config) withDefaults(replicas int) Config {
	c.Server = cmp.Or(c.Server, "redis-server")
	c.StartTimeout = cmp.Or(c.StartTimeout, time.Minute)
	c.Masters = cmp.Or(c.Masters, 3)
	c.Replicas = number(c.Replicas, replicas)
	c.Sentinels = cmp.Or(c.Sentinels, 3)
	c.Quorum = cmp.Or(c.Quorum, c.Sentinels/2+1)
	c.DownAfter = cmp.Or(c.DownAfter, 1500*time.Millisecond)
	c.FailoverTimeout = cmp.Or(c.FailoverTimeout, 10*time.Second)
	c.NodeTimeout = cmp.Or(c.NodeTimeout, time.Second)
	return c
}

// number resolves None and the default of a count.
func number(n, otherwise int) int {
	if n == None {
		return 0
	}
	return cmp.Or(n, otherwise)
}
