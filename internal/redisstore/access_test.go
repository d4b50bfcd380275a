package redisstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// user gives a test an account that may do what rules say, and nothing else.
func user(server *redistest.Server, rules ...string) redisstore.Access {
	server.SetUser("limiter", "s3cret", append(rules, "~rl:*")...)
	return redisstore.Access{Username: "limiter", Password: "s3cret"}
}

// least is all that the documentation asks for.
var least = []string{"+evalsha", "+script|load", "+ping", "+role", "+time", "+get", "+set"}

func TestStore_LeastPrivilege(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	r := run(t, standalone(t, server.URL(), user(server, least...)), quick()).serving()
	r.take(charge("k", 1))
}

func TestStore_PasswordRotation(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	admin := server.Client()
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("s3cret")
	cfg := user(server, least...)
	cfg.Password, cfg.PasswordFile = "", file
	r := run(t, standalone(t, server.URL(), cfg), quick()).serving()
	r.take(charge("k", 1))

	server.ACL("limiter", "resetpass", ">an0ther")
	r.take(charge("k", 1)) // an established connection stays logged in
	do(t, admin, "client", "kill", "user", "limiter")
	r.fails(failure.CauseAuth)
	if text := r.Stats().LastError.Text; !strings.Contains(text, "WRONGPASS") || strings.Contains(text, "s3cret") {
		t.Errorf("the last error reads %q", text)
	}
	write("an0ther")
	r.heals()
}

func TestStore_RefusedCredentials(t *testing.T) {
	locked := redistest.Start(t, redistest.Config{Password: "s3cret"})
	open := redistest.Start(t, redistest.Config{})
	for name, c := range map[string]struct {
		server *redistest.Server
		access redisstore.Access
		want   failure.Cause
	}{
		"none given":     {locked, redisstore.Access{}, failure.CauseAuth},
		"wrong password": {locked, redisstore.Access{Password: "guess"}, failure.CauseAuth},
		"may not ask for the role": {
			open, user(open, "+evalsha", "+script|load", "+ping", "+time", "+get", "+set"), failure.CauseNoPerm,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, standalone(t, c.server.URL(), c.access), quick())
			r.fails(c.want)
			if text := r.Stats().LastError.Text; strings.Contains(text, "s3cret") || strings.Contains(text, "guess") {
				t.Errorf("the last error shows the password: %q", text)
			}
		})
	}
}

// TestStore_RefusedPermissions takes a permission away from a running store, and gives it back.
func TestStore_RefusedPermissions(t *testing.T) {
	for name, rules := range map[string][2]string{
		"evalsha":                 {"-evalsha", "+evalsha"},
		"a command in the script": {"-set", "+set"},
		"the keys":                {"resetkeys", "~rl:*"},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, redistest.Config{})
			r := run(t, standalone(t, server.URL(), user(server, least...)), quick()).serving()
			server.ACL("limiter", rules[0])
			r.fails(failure.CauseNoPerm)
			server.ACL("limiter", rules[1])
			r.heals()
		})
	}
}

// TestStore_OneConnectionIsEnough: while one lane serves, another that cannot connect is no evidence.
func TestStore_OneConnectionIsEnough(t *testing.T) {
	server := redistest.Start(t, redistest.Config{Args: []string{"--maxclients", "2"}})
	admin := server.Client()
	do(t, admin, "ping")
	r := run(t, at(t, server.URL()), quick())
	redistest.Eventually(t, "one lane serves, the other fails again and again", func() bool {
		return r.Stats().Connected == 1 && r.hooks.count("dialed max_clients") > 3
	})
	r.health.reset()
	before := r.hooks.count("dialed max_clients")
	redistest.Eventually(t, "the other fails some more", func() bool {
		return r.hooks.count("dialed max_clients") > before+3
	})
	if got := r.health.count("failed max_clients"); got != 0 {
		t.Errorf("a serving store was blamed %d times", got)
	}
	r.take(charge("k", 1))
}

func TestStore_FullServer(t *testing.T) {
	server := redistest.Start(t, redistest.Config{Args: []string{"--maxclients", "1"}})
	admin := server.Client()
	do(t, admin, "ping")
	r := run(t, at(t, server.URL()), quick())
	r.fails(failure.CauseMaxClients)
	do(t, admin, "config", "set", "maxclients", 10)
	r.heals()
}
