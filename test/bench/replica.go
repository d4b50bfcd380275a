package main

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/honestlimit/ratelimit/internal/process"
)

// startReplica starts a Redis that follows the one at master, and returns once it is in step.
func startReplica(ctx context.Context, master string) (*subject, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	addrs, err := process.FreeAddresses(1)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(master)
	if err != nil {
		return nil, err
	}
	s := &subject{addr: addrs[0]}
	// Without a file of its own to receive the first copy in, it needs no directory that it may write to.
	if s.redis, err = startRedis(ctx, s.addr, "--replicaof", host+" "+port, "--repl-diskless-load", "swapdb"); err != nil {
		return nil, err
	}
	// Until the master has heard from it, it gets nothing.
	err = s.redis.AwaitReady(ctx, func(ctx context.Context) error {
		client := redisClient(master)
		defer client.Close()
		text, err := client.Info(ctx, "replication").Result()
		if err == nil && !strings.Contains(text, "state=online") {
			err = errors.New("the replica is not in step yet")
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// inStep waits until the replica has all that the master had when it was asked.
func inStep(ctx context.Context, master, replica string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	m, err := infoOf(ctx, master)
	if err != nil {
		return err
	}
	return process.Await(ctx, "the replica", func(ctx context.Context) error {
		r, err := infoOf(ctx, replica)
		if err == nil && r["slave_repl_offset"] < m["master_repl_offset"] {
			err = errors.New("it lags behind")
		}
		return err
	})
}

// counters are the INFO of a master, the commands that services sent it (what a script calls is not sent), and the
// writes that reached its replica.
func counters(ctx context.Context, master, replica string) (samples, error) {
	if err := inStep(ctx, master, replica); err != nil {
		return nil, err
	}
	m, err := infoOf(ctx, master)
	if err != nil {
		return nil, err
	}
	r, err := infoOf(ctx, replica)
	if err != nil {
		return nil, err
	}
	m["replica_writes"] = calls(r, "set", "setex", "psetex", "incr", "incrby", "expire", "pexpire", "pexpireat",
		"expireat", "del", "unlink", "multi", "exec")
	m["calls"] = calls(m, "evalsha", "eval", "incr", "incrby", "expire")
	return m, nil
}

func calls(info samples, commands ...string) float64 {
	var n float64
	for _, c := range commands {
		n += info["cmdstat_"+c]
	}
	return n
}
