package rotation_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/topology"
)

// wait bounds whatever is awaited here; a healthy machine needs a few seconds at most.
const wait = time.Minute

// Every password is rotated by the commands of the page while Redis decides each request, and everything that a
// password could break is then broken on purpose.
func TestRotation_WorksAsDocumented(t *testing.T) {
	steps := readPage(t)
	old := topology.NewSecrets()
	set := startSet(t, old)
	passwords := passwordFiles(t, old)
	machines := map[string]string{
		"NODES": addresses(set.Data()), "SENTINELS": addresses(set.Sentinels()), "MASTER": topology.MasterName,
		"PASSWORDS": passwords, "REDISCLI_AUTH": old.Operator,
	}
	s := startService(t, set, passwords)
	s.load(t)
	s.awaitAllowed(t)
	forgetRefusals(t, set)
	s.take()

	proof := steps.sections[len(steps.sections)-1]
	for _, step := range steps.sections[:len(steps.sections)-1] {
		steps.run(t, step, machines)
		s.onlyAllowed(t, step.title)
	}
	steps.run(t, proof, machines)
	s.onlyExplained(t, proof.title)
	noRefusals(t, set)
	oldPasswordsAreRefused(t, set, old)
	s.survivesAFailover(t, set)
}

func startSet(t *testing.T, secrets *topology.Secrets) *topology.Sentinel {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	set, err := topology.StartSentinel(ctx, topology.Config{Dir: t.TempDir(), Secrets: secrets})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return set
}

func passwordFiles(t *testing.T, secrets *topology.Secrets) string {
	t.Helper()
	dir := t.TempDir()
	for name, password := range map[string]string{"redis": secrets.Service, "sentinel": secrets.SentinelService} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func addresses(nodes []*topology.Node) string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.Addr())
	}
	return strings.Join(all, " ")
}

// forgetRefusals empties the lists of refused logins: before it had the whole set, Sentinel may have tried too early.
func forgetRefusals(t *testing.T, set *topology.Sentinel) {
	t.Helper()
	for _, n := range set.Nodes() {
		if err := n.Client().Do(t.Context(), "acl", "log", "reset").Err(); err != nil {
			t.Fatalf("%s: %v", n.Name(), err)
		}
	}
}

// noRefusals checks that no server has refused a password, to anybody.
func noRefusals(t *testing.T, set *topology.Sentinel) {
	t.Helper()
	for _, n := range set.Nodes() {
		refused, err := n.Client().ACLLog(t.Context(), 100).Result()
		if err != nil {
			t.Fatalf("%s: %v", n.Name(), err)
		}
		for _, r := range refused {
			if r.Reason == "auth" {
				t.Errorf("%s has refused the password of %s %d times", n.Name(), r.Username, r.Count)
			}
		}
	}
}

// oldPasswordsAreRefused tries all of them, and the operator's, which was not rotated, as a check of the check.
func oldPasswordsAreRefused(t *testing.T, set *topology.Sentinel, old *topology.Secrets) {
	t.Helper()
	for _, n := range set.Data() {
		for user, password := range map[string]string{
			"ratelimit": old.Service, "sentinel": old.Sentinel, "replication": old.Replication,
		} {
			refuses(t, n, user, password)
		}
	}
	for _, n := range set.Sentinels() {
		refuses(t, n, "ratelimit", old.SentinelService)
		refuses(t, n, "peer", old.Peer)
		if err := login(t, n, "operator", old.Operator); err != nil {
			t.Errorf("%s: operator: %v, want to be let in", n.Name(), err)
		}
	}
}

func refuses(t *testing.T, n *topology.Node, user, password string) {
	t.Helper()
	if err := login(t, n, user, password); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("%s: the old password of %s: %v, want WRONGPASS", n.Name(), user, err)
	}
}

func login(t *testing.T, n *topology.Node, user, password string) error {
	t.Helper()
	client := redisstore.NewClient(redisstore.Target{
		Network: "tcp", Address: n.Addr(), Username: user, Password: redisstore.Secret(password),
	}, wait)
	return errors.Join(client.Ping(t.Context()).Err(), client.Close())
}

// survivesAFailover kills the master: Sentinels must be let in everywhere to replace it, the other replica at the new
// master, the service as well, and the old master, when it comes back, with what it has kept in its files.
func (s *service) survivesAFailover(t *testing.T, set *topology.Sentinel) {
	t.Helper()
	master, err := set.Master(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := master.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, "another master", func(ctx context.Context) error {
		now, err := set.Master(ctx)
		if err == nil && now == master {
			return errors.New("still the one that is dead")
		}
		return err
	})
	s.onlyExplained(t, "failover")
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	if err := master.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	await(t, "the old master to be a replica", set.Healthy)
	s.onlyAllowed(t, "after the failover")
}

func await(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	if err := process.Await(ctx, what, check); err != nil {
		t.Fatal(err)
	}
}
