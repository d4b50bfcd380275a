package redisstore

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// Errors of our own, beside those of go-redis and the network.
var (
	errLoad       = errors.New("redisstore: script load")
	errReplica    = errors.New("redisstore: the server is not a master")
	errSlow       = errors.New("redisstore: the server answers more slowly than the budget")
	errShape      = errors.New("redisstore: a reply of another shape than the script's")
	errSpent      = errors.New("redisstore: a connection is opened only once")
	errMaxClients = errors.New("redisstore: the server has no room for another connection")
	errResolve    = errors.New("redisstore: no address to connect to")
)

// own maps the errors above.
var own = []struct {
	err   error
	cause failure.Cause
}{
	{errReplica, failure.CauseReadOnly},
	{errSlow, failure.CauseDeadline},
	{errShape, failure.CauseProtocol},
	{errMaxClients, failure.CauseMaxClients},
	{errResolve, failure.CauseDial},
	{redis.Nil, failure.CauseProtocol}, // the script never says nothing
}

// replies maps the first word of an error reply. "ERR" says nothing by itself, see errReplies.
var replies = map[string]failure.Cause{
	"NOSCRIPT":    failure.CauseNoScript,
	"LOADING":     failure.CauseLoading,
	"READONLY":    failure.CauseReadOnly,
	"MASTERDOWN":  failure.CauseMasterDown,
	"CLUSTERDOWN": failure.CauseClusterDown,
	"MOVED":       failure.CauseMoved,
	"ASK":         failure.CauseMoved,
	"TRYAGAIN":    failure.CauseTryAgain,
	"CROSSSLOT":   failure.CauseScript,
	"NOREPLICAS":  failure.CauseNoReplicas,
	"OOM":         failure.CauseOOM,
	"BUSY":        failure.CauseBusy,
	"UNKILLABLE":  failure.CauseBusy,
	"MISCONF":     failure.CauseMisconf,
	"NOAUTH":      failure.CauseAuth,
	"WRONGPASS":   failure.CauseAuth,
	"NOPERM":      failure.CauseNoPerm,
	"WRONGTYPE":   failure.CauseScript,
	"EXECABORT":   failure.CauseOther,
}

// errReplies maps what an "ERR" reply contains. Redis up to 6.2 wraps the errors inside a script, with their own first
// word after a dash; Redis 7 reports a command that the ACL forbids to a script without NOPERM.
var errReplies = []struct {
	part  string
	cause failure.Cause
}{
	{"max number of clients", failure.CauseMaxClients},
	{"can't run this command", failure.CauseNoPerm},
	{"invalid password", failure.CauseAuth},
	{"without any password configured", failure.CauseAuth},
	{"-READONLY ", failure.CauseReadOnly},
	{"-OOM ", failure.CauseOOM},
	{"-NOREPLICAS ", failure.CauseNoReplicas},
	{"-MISCONF ", failure.CauseMisconf},
	{"-NOPERM ", failure.CauseNoPerm},
	{"script", failure.CauseScript},
}

// classify names what went wrong. A script that the server refuses to load, for whatever reason that is no passing
// state of it, stays missing.
func classify(err error) failure.Cause {
	c := kind(err)
	if !errors.Is(err, errLoad) {
		return c
	}
	switch c {
	case failure.CauseNoPerm, failure.CauseScript, failure.CauseOther:
		return failure.CauseNoScript
	default:
		return c
	}
}

// kind names the error itself. The order matters: a server that replied did not time out, a dial that timed out is an
// unreachable server and no slow one, and a timeout is also a network error.
func kind(err error) failure.Cause {
	if err == nil {
		return failure.CauseNone
	}
	for _, o := range own {
		if errors.Is(err, o.err) {
			return o.cause
		}
	}
	var reply redis.Error
	if errors.As(err, &reply) {
		return classifyReply(reply.Error())
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return failure.CauseDial
	}
	if isTimeout(err) {
		return failure.CauseIOTimeout
	}
	return classifyTransport(err)
}

// isReply tells whether the server answered with an error, which leaves the connection in order.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

func classifyReply(text string) failure.Cause {
	word, rest, _ := strings.Cut(text, " ")
	if c, ok := replies[word]; ok {
		return c
	}
	for _, r := range errReplies {
		if strings.Contains(rest, r.part) {
			return r.cause
		}
	}
	return failure.CauseOther
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

func classifyTransport(err error) failure.Cause {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errSpent),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return failure.CauseReset
	case errors.Is(err, net.ErrClosed), errors.Is(err, redis.ErrClosed), errors.Is(err, context.Canceled):
		return failure.CauseClosed
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return failure.CauseReset
	}
	// What is left is go-redis failing to make sense of a reply.
	return failure.CauseProtocol
}

// drops tells whether a connection on which c was met must be replaced: it leads to the wrong server, or its
// credentials are no longer good.
func drops(c failure.Cause) bool {
	switch c {
	case failure.CauseReadOnly, failure.CauseMasterDown, failure.CauseAuth:
		return true
	default:
		return false
	}
}
