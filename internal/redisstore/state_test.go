package redisstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

func TestStore_NeverServesFromReplica(t *testing.T) {
	master := redistest.Start(t, redistest.Config{})
	host, port, _ := strings.Cut(master.Addr(), ":")
	t.Run("at start", func(t *testing.T) {
		replica := redistest.Start(t, redistest.Config{Args: []string{"--replicaof", host + " " + port}})
		r := run(t, at(t, replica.URL()), quick())
		r.fails(failure.CauseReadOnly)
		do(t, replica.Client(), "replicaof", "no", "one")
		r.heals()
	})
	t.Run("demoted while running, met by a write", func(t *testing.T) {
		server := redistest.Start(t, redistest.Config{})
		cfg := quick()
		cfg.CheckInterval = time.Hour
		r := run(t, at(t, server.URL()), cfg).serving()
		r.take(charge("k", 1))
		do(t, server.Client(), "replicaof", host, port)
		if got := r.ask(); got != failure.CauseReadOnly {
			t.Errorf("the first write failed of %v, want readonly", got)
		}
		r.fails(failure.CauseReadOnly)
	})
	t.Run("demoted while running, met by reads only", func(t *testing.T) {
		server := redistest.Start(t, redistest.Config{})
		r := run(t, at(t, server.URL()), quick()).serving()
		do(t, server.Client(), "replicaof", host, port)
		redistest.Eventually(t, "calls that only read fail too", func() bool {
			return r.cause(r.submit(charge("k", 0))) == failure.CauseReadOnly
		})
	})
}

// TestStore_ServerStates brings a real server into each state that keeps it from deciding, and out of it again.
func TestStore_ServerStates(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		breaks func(t *testing.T, admin *redis.Client)
		heals  func(t *testing.T, admin *redis.Client)
		want   failure.Cause
	}{
		"out of memory": {
			breaks: func(t *testing.T, admin *redis.Client) { do(t, admin, "config", "set", "maxmemory", 1) },
			heals:  func(t *testing.T, admin *redis.Client) { do(t, admin, "config", "set", "maxmemory", 0) },
			want:   failure.CauseOOM,
		},
		"too few replicas": {
			breaks: func(t *testing.T, admin *redis.Client) { do(t, admin, "config", "set", "min-replicas-to-write", 1) },
			heals:  func(t *testing.T, admin *redis.Client) { do(t, admin, "config", "set", "min-replicas-to-write", 0) },
			want:   failure.CauseNoReplicas,
		},
		"writes stopped after a failed snapshot": {
			args: []string{"--save", "3600 1"},
			breaks: func(t *testing.T, admin *redis.Client) {
				obstruct(t, admin)
				do(t, admin, "bgsave")
				redistest.Eventually(t, "the snapshot has failed", func() bool {
					return strings.Contains(admin.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
				})
			},
			heals: func(t *testing.T, admin *redis.Client) {
				do(t, admin, "config", "set", "stop-writes-on-bgsave-error", "no")
			},
			want: failure.CauseMisconf,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, redistest.Config{Args: c.args})
			admin := server.Client()
			r := run(t, at(t, server.URL()), quick()).serving()
			r.take(charge("k", 1))
			dials := r.hooks.count("dialed none")
			c.breaks(t, admin)
			r.fails(c.want)
			c.heals(t, admin)
			r.heals()
			if r.hooks.count("dialed none") != dials {
				t.Error("an error reply cost the connection")
			}
			if r.health.count("answered "+c.want.String()) == 0 {
				t.Errorf("evidence: %v", r.health.all())
			}
		})
	}
}

// A key that holds something else is the trouble of those who ask for it, and no evidence against the store.
func TestStore_ABucketThatIsNoStringFailsOnlyItsOwn(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	admin := server.Client()
	r := run(t, at(t, server.URL()), quick()).serving()
	do(t, admin, "lpush", charge("k", 1).Key, "x")
	r.fails(failure.CauseScript)
	r.take(charge("neighbour", 1))
	if n := r.health.count("answered script"); n != 0 {
		t.Errorf("evidence: %v", r.health.all())
	}
	do(t, admin, "del", charge("k", 1).Key)
	r.heals()
}

// obstruct puts something in the way of a snapshot that not even root can write over.
func obstruct(t *testing.T, admin *redis.Client) {
	t.Helper()
	dir := admin.ConfigGet(t.Context(), "dir").Val()["dir"]
	if err := os.MkdirAll(filepath.Join(dir, "dump.rdb", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestStore_BusyServer(t *testing.T) {
	server := redistest.Start(t, redistest.Config{Args: []string{"--lua-time-limit", "5"}})
	admin := server.Client()
	r := run(t, at(t, server.URL()), quick()).serving()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		endless := redis.NewClient(&redis.Options{Addr: server.Addr(), ReadTimeout: -1, MaxRetries: -1})
		defer func() { _ = endless.Close() }()
		endless.Eval(t.Context(), "while true do end", nil)
	}()
	r.fails(failure.CauseBusy)
	redistest.Eventually(t, "the endless script is ended", func() bool {
		return admin.Do(t.Context(), "script", "kill").Err() == nil
	})
	<-ended
	r.heals()
}

// TestStore_AnswersOfAFake puts words into a server's mouth that are hard to get from a real one.
func TestStore_AnswersOfAFake(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   failure.Cause
		keeps  bool // the connection
	}{
		"loading":          {"-LOADING Redis is loading the dataset in memory\r\n", failure.CauseLoading, true},
		"master down":      {"-MASTERDOWN Link with MASTER is down\r\n", failure.CauseMasterDown, false},
		"cluster down":     {"-CLUSTERDOWN The cluster is down\r\n", failure.CauseClusterDown, true},
		"try again":        {"-TRYAGAIN Multiple keys request during rehashing of slot\r\n", failure.CauseTryAgain, true},
		"moved":            {"-MOVED 3999 127.0.0.1:6381\r\n", failure.CauseMoved, true},
		"not logged in":    {"-NOAUTH Authentication required.\r\n", failure.CauseAuth, false},
		"unknown error":    {"-WHATEVER it is\r\n", failure.CauseOther, true},
		"garbage":          {"HTTP/1.1 400 Bad Request\r\n\r\n", failure.CauseProtocol, false},
		"another type":     {"*2\r\n:1\r\n:2\r\n", failure.CauseProtocol, false},
		"too short":        {"$2\r\nhi\r\n", failure.CauseProtocol, false},
		"too long":         {"$30\r\n" + strings.Repeat("\x01", 30) + "\r\n", failure.CauseProtocol, false},
		"impossible value": {redistest.Decided(7, 2, 0, 4), failure.CauseProtocol, false},
		"no reply at all":  {"$-1\r\n", failure.CauseProtocol, true},
		"hangs up":         {redistest.HangUp, failure.CauseReset, false},
		"truncated":        {"$22\r\n\x01", failure.CauseIOTimeout, false},
		"silence":          {"", failure.CauseIOTimeout, false},
	} {
		t.Run(name, func(t *testing.T) {
			fake := redistest.NewFake(t, redistest.Healthy(func([]string) string { return c.answer }))
			cfg := quick()
			cfg.Lanes, cfg.CheckInterval = 1, time.Hour
			if c.want == failure.CauseIOTimeout {
				cfg.SocketTimeout = 50 * time.Millisecond
			}
			r := run(t, at(t, fake.URL()), cfg).serving()
			if got := r.ask(); got != c.want {
				t.Errorf("the call failed of %v, want %v (%+v)", got, c.want, r.Stats().LastError)
			}
			if got := r.health.count("answered " + c.want.String()); got != 1 {
				t.Errorf("evidence: %v", r.health.all())
			}
			fake.Say(redistest.Healthy(func([]string) string { return redistest.Decided(1, 9, 0, 1000) }))
			r.heals()
			if kept := fake.Dials() == 1; kept != c.keeps {
				t.Errorf("the connection was kept: %v, want %v", kept, c.keeps)
			}
		})
	}
}

func TestStore_HugeRetryAfter(t *testing.T) {
	fake := redistest.NewFake(t, redistest.Healthy(func([]string) string {
		return redistest.Decided(0, 0, 1<<52, 1<<52)
	}))
	r := run(t, at(t, fake.URL()), quick()).serving()
	want := []limit.Result{{RetryAfter: limit.Forever, ResetAfter: limit.Forever}}
	if diff := cmp.Diff(want, r.take(charge("k", 1))); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}
