package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// reply brings an error reply through go-redis, which gives some of them types of their own.
func replies(t *testing.T, texts []string) map[string]error {
	t.Helper()
	out := map[string]error{}
	fake := redistest.NewFake(t, func(args []string) string {
		if args[0] == "hello" {
			return "*0\r\n"
		}
		return "-" + args[1] + "\r\n"
	})
	c := redis.NewClient(&redis.Options{Addr: fake.Addr(), MaxRetries: -1, DisableIdentity: true, Protocol: 2})
	defer func() { _ = c.Close() }()
	for _, text := range texts {
		if out[text] = c.Do(t.Context(), "say", text).Err(); out[text] == nil {
			t.Fatalf("%q was no error", text)
		}
	}
	return out
}

func TestClassify_Replies(t *testing.T) {
	want := map[string]failure.Cause{
		"NOSCRIPT No matching script. Please use EVAL.":                                 failure.CauseNoScript,
		"LOADING Redis is loading the dataset in memory":                                failure.CauseLoading,
		"READONLY You can't write against a read only replica. script: 1f, on @user:1.": failure.CauseReadOnly,
		"ERR Error running script (call to f_1): @user_script:1: -READONLY You can't":   failure.CauseReadOnly,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is 'no'":      failure.CauseMasterDown,
		"CLUSTERDOWN Hash slot not served":                                              failure.CauseClusterDown,
		"MOVED 3999 127.0.0.1:6381":                                                     failure.CauseMoved,
		"ASK 3999 127.0.0.1:6381":                                                       failure.CauseMoved,
		"TRYAGAIN Multiple keys request during rehashing of slot":                       failure.CauseTryAgain,
		"NOREPLICAS Not enough good replicas to write. script: 1f, on @user_script:1.":  failure.CauseNoReplicas,
		"ERR Error running script: @user_script:1: -NOREPLICAS Not enough":              failure.CauseNoReplicas,
		"OOM command not allowed when used memory > 'maxmemory'. script: 1f":            failure.CauseOOM,
		"ERR Error running script: @user_script:1: -OOM command not allowed":            failure.CauseOOM,
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL":            failure.CauseBusy,
		"UNKILLABLE Sorry the script already executed write commands":                   failure.CauseBusy,
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable":  failure.CauseMisconf,
		"NOAUTH Authentication required.":                                               failure.CauseAuth,
		"WRONGPASS invalid username-password pair or user is disabled.":                 failure.CauseAuth,
		"ERR invalid password": failure.CauseAuth,
		"ERR AUTH <password> called without any password configured for the default user": failure.CauseAuth,
		"NOPERM this user has no permissions to run the 'evalsha' command":                failure.CauseNoPerm,
		"ERR The user executing the script can't run this command or subcommand":          failure.CauseNoPerm,
		"ERR max number of clients reached":                                               failure.CauseMaxClients,
		"CROSSSLOT Keys in request don't hash to the same slot":                           failure.CauseScript,
		"ERR user_script:7: Script attempted to access nonexistent global variable 'x'":   failure.CauseScript,
		"WRONGTYPE Operation against a key holding the wrong kind of value":               failure.CauseScript,
		"BUSYGROUP is another word":                                                       failure.CauseOther,
		"ERR unknown command":                                                             failure.CauseOther,
		"lower case nonsense":                                                             failure.CauseOther,
	}
	var texts []string
	for text := range want {
		texts = append(texts, text)
	}
	for text, err := range replies(t, texts) {
		for _, err := range []error{err, fmt.Errorf("wrapped: %w", err)} {
			if got := redisstore.Classify(err); got != want[text] {
				t.Errorf("%v is %v, want %v", err, got, want[text])
			}
		}
	}
}

// TestClassify_RefusedLoad: a refusal leaves the script missing, a passing state of the server is that state.
func TestClassify_RefusedLoad(t *testing.T) {
	want := map[string]failure.Cause{
		"NOPERM this user has no permissions": failure.CauseNoScript,
		"ERR unknown subcommand":              failure.CauseNoScript,
		"ERR Error compiling script":          failure.CauseNoScript,
		"LOADING Redis is loading":            failure.CauseLoading,
		"BUSY Redis is busy":                  failure.CauseBusy,
		"NOAUTH Authentication required.":     failure.CauseAuth,
	}
	var texts []string
	for text := range want {
		texts = append(texts, text)
	}
	for text, err := range replies(t, texts) {
		if got := redisstore.Classify(fmt.Errorf("%w: %w", redisstore.ErrLoad, err)); got != want[text] {
			t.Errorf("load refused with %q is %v, want %v", text, got, want[text])
		}
	}
	if got := redisstore.Classify(fmt.Errorf("%w: %w", redisstore.ErrLoad, io.EOF)); got != failure.CauseReset {
		t.Errorf("load cut off is %v, want reset", got)
	}
}

func TestClassify_Transport(t *testing.T) {
	dialTimeout := &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	for name, c := range map[string]struct {
		err  error
		want failure.Cause
	}{
		"nothing":                   {nil, failure.CauseNone},
		"refused":                   {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, failure.CauseDial},
		"dial timed out":            {dialTimeout, failure.CauseDial},
		"unknown host":              {&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "h"}}, failure.CauseDial},
		"read timed out":            {&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, failure.CauseIOTimeout},
		"handshake timed out":       {os.ErrDeadlineExceeded, failure.CauseIOTimeout},
		"context's deadline":        {context.DeadlineExceeded, failure.CauseIOTimeout},
		"pool timeout":              {redis.ErrPoolTimeout, failure.CauseIOTimeout},
		"peer closed":               {io.EOF, failure.CauseReset},
		"peer closed in mid-reply":  {io.ErrUnexpectedEOF, failure.CauseReset},
		"peer reset":                {&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, failure.CauseReset},
		"broken pipe":               {&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)}, failure.CauseReset},
		"no route":                  {&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.EHOSTUNREACH)}, failure.CauseReset},
		"our end closed":            {&net.OpError{Op: "read", Err: net.ErrClosed}, failure.CauseClosed},
		"client closed":             {redis.ErrClosed, failure.CauseClosed},
		"canceled":                  {context.Canceled, failure.CauseClosed},
		"a reply that is no reply":  {errors.New("redis: can't parse array reply: \"HTTP\""), failure.CauseProtocol},
		"an empty reply":            {redis.Nil, failure.CauseProtocol},
		"a replica":                 {redisstore.ErrReplica, failure.CauseReadOnly},
		"sticky connection was bad": {fmt.Errorf("redis: Conn is in a bad state: %w", io.EOF), failure.CauseReset},
	} {
		if got := redisstore.Classify(c.err); got != c.want {
			t.Errorf("%s is %v, want %v", name, got, c.want)
		}
	}
}
