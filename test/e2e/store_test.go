package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/redistest"
)

// stage is a store that works until it is hit by a fault, which lift ends.
type stage struct {
	// flags tell the service where the store is.
	flags     []string
	hit, lift func()
}

// user is what the service logs in as: it may do what it needs and nothing else.
const user = "limiter"

var permissions = []string{"~rl:*", "+ping", "+role", "+script|load", "+evalsha", "+time", "+get", "+set"}

// store is a real Redis, and a connection of its administrator that is open before anything fails.
type store struct {
	*redistest.Server
	admin        *redis.Conn
	password     string
	passwordFile string
}

// newStore starts a Redis in which the service has its user, also after a restart.
func newStore(t *testing.T, s *secrets, args ...string) *store {
	t.Helper()
	st := &store{
		password:     s.keep("secret-" + strconv.FormatInt(time.Now().UnixNano(), 36)),
		passwordFile: filepath.Join(t.TempDir(), "password"),
	}
	acl := append([]string{"--user", user, "on", ">" + st.password}, permissions...)
	st.Server = startRedis(t, redistest.Config{Args: append(acl, args...)})
	writeFile(t, st.passwordFile, st.password+"\n")
	st.connect(t)
	return st
}

func (st *store) connect(t *testing.T) {
	t.Helper()
	st.admin = st.Client().Conn()
	st.do(t, "PING")
}

// at are the flags by which the service finds the store at url, which may be that of a proxy before it.
func (st *store) at(url string) []string {
	return []string{"--redis", url, "--redis-username", user, "--redis-password-file", st.passwordFile}
}

// do runs a command as the administrator.
func (st *store) do(t *testing.T, args ...any) {
	t.Helper()
	ctx, cancel := deadline(t)
	defer cancel()
	if err := st.admin.Do(ctx, args...).Err(); err != nil {
		t.Fatalf("redis: %v: %v", args[0], err)
	}
}

// doing returns do with each of the commands, words separated by spaces, for later.
func (st *store) doing(t *testing.T, commands ...string) func() {
	return func() {
		t.Helper()
		for _, c := range commands {
			var args []any
			for word := range strings.FieldsSeq(c) {
				if word == "EMPTY" {
					word = ""
				}
				args = append(args, word)
			}
			st.do(t, args...)
		}
	}
}

// stager sets a stage.
type stager func(t *testing.T, s *secrets) stage

// byCommand is a Redis that its administrator brings into trouble.
func byCommand(hit, lift []string) stager {
	return func(t *testing.T, s *secrets) stage {
		st := newStore(t, s)
		return stage{flags: st.at(st.URL()), hit: st.doing(t, hit...), lift: st.doing(t, lift...)}
	}
}

func frozen(t *testing.T, s *secrets) stage {
	st := newStore(t, s)
	return stage{flags: st.at(st.URL()), hit: st.Freeze, lift: st.Thaw}
}

func killed(t *testing.T, s *secrets) stage {
	st := newStore(t, s)
	return stage{flags: st.at(st.URL()), hit: st.Kill, lift: st.Restart}
}

// weather is a Redis behind a network that a fault of its own befalls.
func weather(hit func(*redistest.Proxy)) stager {
	return func(t *testing.T, s *secrets) stage {
		st := newStore(t, s)
		p := redistest.NewProxy(t, st.Network(), st.Addr())
		return stage{flags: st.at("redis://" + p.Addr()), hit: func() { hit(p) }, lift: p.Heal}
	}
}

// says is a stand-in that answers every decision as told, and everything else as a healthy master.
func says(reply string) stager {
	return func(t *testing.T, _ *secrets) stage {
		t.Helper()
		f := redistest.NewFake(t, redistest.Healthy(admit))
		return stage{
			flags: []string{"--redis", f.URL()},
			hit:   func() { f.Say(redistest.Healthy(func([]string) string { return reply })) },
			lift:  func() { f.Say(redistest.Healthy(admit)) },
		}
	}
}

// admit is what the script (scripts/decide.lua) replies for buckets that have room.
func admit(args []string) string {
	if args[0] != "evalsha" {
		return "-ERR the stand-in knows no " + args[0] + "\r\n"
	}
	buckets, err := strconv.Atoi(args[2])
	if err != nil {
		return "-ERR " + err.Error() + "\r\n"
	}
	// Of each bucket: admitted, 9 remain, retry after 0 (+ 1), full again in 1 microsecond.
	const each = "\x01" + "\x00\x00\x00\x00\x00\x00\x09" + "\x00\x00\x00\x00\x00\x00\x01" + "\x00\x00\x00\x00\x00\x00\x01"
	const now = "\x00\x00\x00\x00\x00\x00\x01" // the time of the decision
	reply := now + strings.Repeat(each, buckets)
	return "$" + strconv.Itoa(len(reply)) + "\r\n" + reply + "\r\n"
}

// noPassword is a Redis that demands a password from one moment to the next, of a service that has none.
func noPassword(t *testing.T, s *secrets) stage {
	st := &store{Server: startRedis(t, redistest.Config{})}
	st.connect(t)
	return stage{
		flags: []string{"--redis", st.URL()},
		hit:   st.doing(t, "CONFIG SET requirepass "+s.keep("newly-required"), "CLIENT KILL TYPE normal"),
		lift:  st.doing(t, "CONFIG SET requirepass EMPTY"),
	}
}

// wrongPassword is a Redis whose password is changed while the service is not told.
func wrongPassword(t *testing.T, s *secrets) stage {
	st := newStore(t, s)
	other := s.keep("another-" + st.password)
	return stage{
		flags: st.at(st.URL()),
		hit:   st.doing(t, "ACL SETUSER "+user+" resetpass >"+other, "CLIENT KILL USER "+user),
		lift:  st.doing(t, "ACL SETUSER "+user+" resetpass >"+st.password),
	}
}

// failedSnapshot is a Redis that cannot save, and so refuses writes: a directory lies where its file should be.
func failedSnapshot(t *testing.T, s *secrets) stage {
	st := newStore(t, s)
	ctx, cancel := deadline(t)
	defer cancel()
	dir, err := st.admin.ConfigGet(ctx, "dir").Result()
	if err != nil {
		t.Fatal(err)
	}
	return stage{
		flags: st.at(st.URL()),
		hit: func() {
			if err := os.Mkdir(filepath.Join(dir["dir"], "dump.rdb"), 0o700); err != nil {
				t.Fatal(err)
			}
			st.do(t, "CONFIG", "SET", "save", "3600 1")
			st.do(t, "BGSAVE")
			redistest.Eventually(t, "the snapshot to fail", func() bool {
				info, err := st.admin.Info(context.Background(), "persistence").Result()
				return err == nil && strings.Contains(info, "rdb_last_bgsave_status:err")
			})
		},
		lift: func() {
			st.do(t, "CONFIG", "SET", "save", "")
			if err := os.Remove(filepath.Join(dir["dir"], "dump.rdb")); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// hungScript is a Redis in which somebody else's script does not end.
func hungScript(t *testing.T, s *secrets) stage {
	st := newStore(t, s, "--busy-reply-threshold", "1")
	culprit := st.Client().Conn()
	return stage{
		flags: st.at(st.URL()),
		hit: func() {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				// It ends with an error, when it is killed.
				_ = culprit.Do(context.Background(), "EVAL", "while true do end", "0").Err()
			}()
			t.Cleanup(func() { <-ended })
			t.Cleanup(func() { _ = st.admin.ScriptKill(context.Background()).Err() }) // also if the test has failed
			redistest.Eventually(t, "the script to hang", func() bool {
				err := st.admin.Ping(context.Background()).Err()
				return err != nil && strings.HasPrefix(err.Error(), "BUSY")
			})
		},
		lift: func() { st.do(t, "SCRIPT", "KILL") },
	}
}

// foreignKeys is a Redis in which somebody overwrote every bucket with a list.
func foreignKeys(t *testing.T, s *secrets) stage {
	st := newStore(t, s)
	each := func(change func(ctx context.Context, key string) error) func() {
		return func() {
			ctx, cancel := deadline(t)
			defer cancel()
			keys, err := st.admin.Keys(ctx, "rl:*").Result()
			if err != nil || len(keys) < len(endpoints) {
				t.Fatalf("keys = %q, %v, want one for each endpoint", keys, err)
			}
			for _, key := range keys {
				if err := change(ctx, key); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	remove := func(ctx context.Context, key string) error { return st.admin.Del(ctx, key).Err() }
	return stage{
		flags: st.at(st.URL()),
		hit: each(func(ctx context.Context, key string) error {
			if err := remove(ctx, key); err != nil {
				return err
			}
			return st.admin.LPush(ctx, key, "not a bucket").Err()
		}),
		lift: each(remove),
	}
}
