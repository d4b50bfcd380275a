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
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/scripts"
)

// proofs in a row, each within the budget, prove a connection; triesPerProof allows for a hiccup of either machine.
const (
	proofs        = 3
	triesPerProof = 3
)

// proofKey is the bucket that proofs charge. It is among those that the account may write, "rl:*".
const proofKey = "rl:proof"

// conn is one connection to a server. It is never re-dialed: what breaks it ends it. Not safe for concurrent use.
type conn struct {
	client *redis.Client
	redis  *redis.Conn
	cfg    *Config
	script string
	sha    string
	opened time.Time
	sever  func() // closes the socket under whoever waits for it; may be called at any time
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
	stop := context.AfterFunc(ctx, c.sever)
	err = c.warm(ctx)
	if !stop() && err == nil {
		err = ctx.Err() // it was cut off in the same instant
	}
	if err != nil {
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
		sever: func() { _ = netConn.Close() },
	}
}

// close drops the connection, whatever state it is in.
func (c *conn) close() {
	_ = c.redis.Close() // neither can do more than forget a broken connection
	_ = c.client.Close()
}

// warm takes every step that may fail before the first call pays for it, but writes nothing. HELLO and AUTH go ahead of
// the first.
func (c *conn) warm(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	// Who may not load the script can still use it if somebody else has.
	if err := c.load(); err != nil && (!isReply(err) || classify(c.rehearse()) == failure.CauseNoScript) {
		return err
	}
	return c.keepTime(ctx)
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

// keepTime asks for a few rehearsals in a row that each came back within the budget, then for the role.
func (c *conn) keepTime(ctx context.Context) error {
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

// prove asks for all that a decision needs: answers in time, a master, and a charge that is written. Without replicas
// or memory enough a server does everything but write.
func (c *conn) prove(ctx context.Context) error {
	if err := c.keepTime(ctx); err != nil {
		return err
	}
	return c.charge()
}

// charge has the script charge a bucket of our own that is full again, and gone, in a millisecond.
func (c *conn) charge() error {
	bucket := limit.NewTokenBucket(limit.Micro, limit.Rate{Micro: limit.MaxRate * limit.Micro, Period: limit.Micro})
	key := c.cfg.ProofKey()
	packed := scripts.AppendRequest(nil, []limit.Charge{{Key: key, Limit: bucket, Cost: 1}})
	_, err := c.decide([]any{"evalsha", c.sha, 1, key, packed})
	if classify(err) == failure.CauseMoved { // the slot has just gone to another node, which is no fault of this one
		return nil
	}
	return err
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
