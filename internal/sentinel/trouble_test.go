package sentinel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/sentinel"
)

func TestWatcher_ExplainsWhyNoMasterIsKnown(t *testing.T) {
	healthy := play{id: id("a"), master: "10.0.0.1:6379"}
	locked := healthy
	locked.password = "s3cret"
	locked.override = map[string]string{
		"sentinel myid":                    "-NOAUTH Authentication required.\r\n",
		"sentinel get-master-addr-by-name": "-NOAUTH Authentication required.\r\n",
	}
	echo := healthy
	echo.override = map[string]string{"auth wrong-s3cret": "-ERR unknown command `auth`, with args beginning with: `wrong-s3cret`\r\n"}
	forbidden := healthy
	forbidden.override = map[string]string{"sentinel master": "-NOPERM this user has no permissions to run the 'sentinel|master' command\r\n"}
	for what, c := range map[string]struct {
		play     play
		cfg      sentinel.Config
		is       error
		mentions string
	}{
		"another master's name": {healthy, sentinel.Config{Master: "orders"}, sentinel.ErrUnknownMaster, `master "orders"`},
		"no password":           {locked, sentinel.Config{}, sentinel.ErrNoSentinel, "asks for a password (NOAUTH)"},
		"a wrong password": {
			locked,
			sentinel.Config{Sentinels: redisstore.Access{Password: "wrong-s3cret"}},
			sentinel.ErrNoSentinel, "password is wrong (WRONGPASS)",
		},
		"a password too many": {
			echo,
			sentinel.Config{Sentinels: redisstore.Access{Password: "wrong-s3cret"}},
			sentinel.ErrNoSentinel, "AUTH is refused",
		},
		"a password file that is missing": {
			locked,
			sentinel.Config{Sentinels: redisstore.Access{PasswordFile: "/nonexistent/password"}},
			sentinel.ErrNoSentinel, "password file",
		},
		"an account without rights": {forbidden, sentinel.Config{}, sentinel.ErrNoSentinel, "NOPERM"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c.cfg.Addresses = []string{fake(t, c.play).Addr()}
			r := watch(t, c.cfg)
			r.await("the Sentinel was tried", func(s sentinel.Stats) bool { return s.Sentinels[0].LastError != "" })
			checkExplanation(t, r, c.is, c.mentions)
		})
	}
}

func checkExplanation(t *testing.T, r *rig, is error, mentions string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := r.Resolve(ctx)
	if !errors.Is(err, is) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fmt.Sprint(err), mentions) {
		t.Errorf("Resolve: %v\nwant one that is %q and mentions %q", err, is, mentions)
	}
	if all := fmt.Sprintf("%v %+v %v", err, r.Stats(), r.Watcher); strings.Contains(all, "s3cret") {
		t.Errorf("the password shows: %s", all)
	}
}

func TestWatcher_ExplainsThatNobodyAnswers(t *testing.T) {
	f := fake(t, play{override: map[string]string{"sentinel myid": redistest.HangUp}})
	r := watch(t, sentinel.Config{Addresses: []string{f.Addr(), "127.0.0.1:1"}})
	r.await("both were tried", func(s sentinel.Stats) bool {
		return s.Sentinels[0].LastError != "" && s.Sentinels[1].LastError != ""
	})
	checkExplanation(t, r, sentinel.ErrNoSentinel, "0 of 2 Sentinels")
	redistest.Eventually(t, "the hook hears of both", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.lost) == 2 && len(r.quorums) == 1
	})
}

// None of these may end the process, keep another Sentinel from being heard, or make anything of what was sent.
func TestWatcher_SurvivesWhatIsNoSentinel(t *testing.T) {
	const address = "sentinel get-master-addr-by-name"
	replies := map[string]map[string]string{
		"an endless array":       {"sentinel myid": "*2000000000\r\n"},
		"an endless word":        {"sentinel myid": "$2000000000\r\n"},
		"an endless line":        {"sentinel myid": "+" + strings.Repeat("x", 1<<20)},
		"a deep nest":            {"sentinel myid": strings.Repeat("*1\r\n", 10000)},
		"negative lengths":       {"sentinel myid": "*-2\r\n"},
		"a web server":           {"sentinel myid": "HTTP/1.1 400 Bad Request\r\n\r\n"},
		"no address":             {address: array("10.0.0.9")},
		"an address of nothing":  {address: array("", "0")},
		"a port too high":        {address: array("10.0.0.9", "65536")},
		"a host with a line":     {address: array("10.0.0.9\r\nX", "6379")},
		"an address of arrays":   {address: "*2\r\n*0\r\n*0\r\n"},
		"no epoch":               {"sentinel master": array("name", name)},
		"an epoch below zero":    {"sentinel master": array("config-epoch", "-1")},
		"an odd number of words": {"sentinel master": array("config-epoch", "1", "flags")},
		"a master of integers":   {"sentinel master": "*2\r\n:1\r\n:2\r\n"},
		"a master that is a word": {
			"sentinel master": "+OK\r\n",
		},
	}
	good := fake(t, play{id: id("a"), master: "10.0.0.1:6379"})
	cfg := sentinel.Config{Addresses: []string{good.Addr()}}
	named := map[string]string{}
	for what, override := range replies {
		bad := fake(t, play{id: id("b"), master: "10.0.0.9:6379", epoch: 9, override: override})
		cfg.Addresses = append(cfg.Addresses, bad.Addr())
		named[bad.Addr()] = what
	}
	r := watch(t, cfg)
	for address, what := range named {
		r.await(what+" was tried", func(s sentinel.Stats) bool {
			isTried := func(one sentinel.Member) bool { return one.Address == address && one.LastError != "" }
			return slices.ContainsFunc(s.Sentinels, isTried)
		})
	}
	if got := r.resolve(); got != "10.0.0.1:6379" {
		t.Errorf("Resolve = %s, want what the only true one says", got)
	}
	if s := r.Stats(); s.Reachable != 1 {
		t.Errorf("%d Sentinels are taken for true, want 1", s.Reachable)
	}
}

func TestNew_ReportsEveryFault(t *testing.T) {
	_, err := sentinel.New(sentinel.Config{
		Master: "my master", Addresses: []string{"nowhere"}, DB: -1, Timeout: -1,
		NAT: map[string]string{"10.0.0.1:6379": "x"}, BackoffMin: time.Minute,
		Data: redisstore.Access{CertFile: "x"},
	})
	for _, part := range []string{
		"one word", `"nowhere" is not host:port`, "database is -1", "timeout is -1ns", "NAT", "reversed", "certificate",
	} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("New: %v\nwant %q in it", err, part)
		}
	}
	if _, err := sentinel.New(sentinel.Config{Master: name}); err == nil {
		t.Error("New without Sentinels = nil error, want one")
	}
}
