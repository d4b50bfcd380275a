package redisstore

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// proofs in a row, each within the budget, prove a connection; triesPerProof allows for a hiccup of either machine.
const (
	proofs        = 3
	triesPerProof = 3
)

// conn is one connection to a server. It is never re-dialed: what breaks it ends it. Not safe for concurrent use.
type conn struct {
	client *redis.Client
	redis  *redis.Conn
	cfg    *Config
	script string
	sha    string
	opened time.Time
}

// open dials the target, logs in, and proves that the server is a master that has the script and answers in time.
func open(ctx context.Context, target Target, s *Store) (*conn, error) {
	start := time.Now()
	netConn, err := dial(ctx, target, s.cfg.DialTimeout)
	if err != nil {
		return nil, err
	}
	c := newConn(target, netConn, s)
	c.opened = start
	if err := c.warm(ctx); err != nil {
		c.close()
		if netConn.rejected.Load() {
			return nil, errMaxClients
		}
		return nil, err
	}
	return c, nil
}

// dial opens the network connection. The timeout covers TLS too.
func dial(ctx context.Context, target Target, timeout time.Duration) (*heardConn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	netConn, err := new(net.Dialer).DialContext(ctx, target.Network, target.Address)
	if err != nil {
		return nil, err
	}
	if target.TLS == nil {
		return &heardConn{Conn: netConn}, nil
	}
	secure := tls.Client(netConn, target.TLS)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = netConn.Close()
		return nil, &net.OpError{Op: "dial", Net: target.Network, Addr: netConn.RemoteAddr(), Err: err}
	}
	return &heardConn{Conn: secure}, nil
}

// newConn wraps a network connection into a client that has this one connection and no way to get another.
func newConn(target Target, netConn net.Conn, s *Store) *conn {
	var spent atomic.Bool
	options := plainOptions(target, s.cfg.SocketTimeout)
	options.DialTimeout = s.cfg.DialTimeout
	options.Dialer = func(context.Context, string, string) (net.Conn, error) {
		if spent.Swap(true) {
			return nil, errSpent
		}
		return netConn, nil
	}
	client := redis.NewClient(options)
	return &conn{
		client: client, redis: client.Conn(), cfg: &s.cfg, script: s.script, sha: s.sha,
	}
}

// close drops the connection, whatever state it is in.
func (c *conn) close() {
	_ = c.redis.Close() // neither can do more than forget a broken connection
	_ = c.client.Close()
}

// warm takes every step that may fail before the first call pays for it. HELLO and AUTH go ahead of the first.
func (c *conn) warm(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	// Who may not load the script can still use it if somebody else has.
	if err := c.load(); err != nil && (!isReply(err) || classify(c.rehearse()) == failure.CauseNoScript) {
		return err
	}
	return c.prove(ctx)
}

// check asks whether the server is alive, ready, and a master. PING shows LOADING, MISCONF and BUSY.
func (c *conn) check() error {
	ctx, cancel := c.context()
	defer cancel()
	pipe := c.redis.Pipeline()
	ping := pipe.Ping(ctx)
	role := pipe.Do(ctx, "role")
	_, err := pipe.Exec(ctx)
	if err := firstError(ping.Err(), role.Err(), err); err != nil {
		return err
	}
	words, _ := role.Slice()
	if len(words) == 0 || words[0] != "master" {
		return errReplica
	}
	return nil
}

// load makes the script known to the server. SCRIPT LOAD, never EVAL: Redis 7.4 and later evict what EVAL brought.
func (c *conn) load() error {
	ctx, cancel := c.context()
	defer cancel()
	if err := c.redis.ScriptLoad(ctx, c.script).Err(); err != nil {
		return fmt.Errorf("%w: %w", errLoad, err)
	}
	return nil
}

// rehearse runs the script on no bucket at all: it finds a missing script or permission, and writes nothing.
func (c *conn) rehearse() error {
	_, err := c.decide([]any{"evalsha", c.sha, 0})
	return err
}

// prove asks for a few rehearsals in a row that each came back within the budget, then for the role.
func (c *conn) prove(ctx context.Context) error {
	inTime := 0
	for range proofs * triesPerProof {
		if err := ctx.Err(); err != nil {
			return err
		}
		start := time.Now()
		if err := c.rehearse(); err != nil {
			return err
		}
		if time.Since(start) > c.cfg.Budget {
			inTime = 0
			continue
		}
		if inTime++; inTime == proofs {
			return c.check()
		}
	}
	return errSlow
}

// decide runs the script with args, which name it too, and returns its reply.
func (c *conn) decide(args []any) (string, error) {
	ctx, cancel := c.context()
	defer cancel()
	cmd := redis.NewStringCmd(ctx, args...)
	err := c.redis.Process(ctx, cmd)
	return cmd.Val(), err
}

// context carries the socket's deadline, never a caller's: a connection must not be lost to an impatient caller.
func (c *conn) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), c.cfg.SocketTimeout)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// heardConn listens to the first thing that a server says. One that is full says so to whoever connects and hangs up,
// which go-redis takes for the end of the handshake.
type heardConn struct {
	net.Conn
	heard    bool
	rejected atomic.Bool
}

// Read reads, and notes a rejection.
func (c *heardConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.heard && n > 0 {
		c.heard = true
		if b[0] == '-' && classifyReply(string(b[1:n])) == failure.CauseMaxClients {
			c.rejected.Store(true)
		}
	}
	return n, err
}
