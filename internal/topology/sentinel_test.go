package topology_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/topology"
)

func TestSentinel_KilledMasterComesBackAsReplica(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	s := redistest.Sentinel(t, topology.Config{Secrets: topology.NewSecrets()})
	old := master(t, s)
	if err := old.Kill(); err != nil {
		t.Fatal(err)
	}
	promoted := awaitMaster(t, s, old)
	if err := old.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	await(t, "the old master to follow", s.Healthy)
	// On a busy machine a second failover may have followed; to the old master none can, for it came back as a replica.
	if now := master(t, s); now == old {
		t.Errorf("%s is master again, want %s or the other replica", now.Name(), promoted.Name())
	}
	if role := role(t, old); role != "slave" {
		t.Errorf("the old master is a %s, want slave", role)
	}
	nothingRefused(t, s.Nodes())
}

func TestSentinel_FrozenMasterIsReplaced(t *testing.T) {
	t.Parallel()
	s := redistest.Sentinel(t, topology.Config{})
	old := master(t, s)
	if err := old.Freeze(); err != nil {
		t.Fatal(err)
	}
	awaitMaster(t, s, old)
	if err := old.Client().Ping(within(t)).Err(); err == nil {
		t.Error("a frozen node answers")
	}
	if err := old.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := old.Client().Ping(within(t)).Err(); err != nil {
		t.Errorf("a thawed node: %v", err)
	}
}

func TestSentinel_PartitionIsolatesTheMaster(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	s := redistest.Sentinel(t, topology.Config{Gated: true})
	old := master(t, s)
	alone := strings.Replace(old.Name(), "redis", "sentinel", 1)
	if err := s.Network().Isolate(old.Name(), alone); err != nil {
		t.Fatal(err)
	}
	promoted := awaitMaster(t, s, old)
	if view := s.Views(ctx)[alone]; view != old.Addr() {
		t.Errorf("the minority's Sentinel names %s, want the old master %s", view, old.Addr())
	}
	log, err := s.Node(alone).Log()
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"+elected-leader", "+switch-master"} {
		if strings.Contains(log, event) {
			t.Errorf("%s in the minority", event)
		}
	}
	await(t, "the old master to stop", func(ctx context.Context) error {
		return refused(old.Client().Set(ctx, "k", "v", time.Minute).Err(), "NOREPLICAS")
	})
	if got := role(t, old); got != "master" {
		t.Errorf("the old master is a %s behind the partition, want master", got)
	}
	if err := s.Network().Heal(); err != nil {
		t.Fatal(err)
	}
	await(t, "the partition to be forgotten", s.Healthy)
	if now := master(t, s); now != promoted {
		t.Errorf("master is %s, want %s", now.Name(), promoted.Name())
	}
}

func TestSentinel_HealthyTellsWhoIsSick(t *testing.T) {
	t.Parallel()
	s := redistest.Sentinel(t, topology.Config{})
	for _, name := range []string{"redis-2", "sentinel-2"} {
		n := s.Node(name)
		if err := n.Freeze(); err != nil {
			t.Fatal(err)
		}
		if err := s.Healthy(within(t)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("with %s frozen, Healthy = %v, want an error that names it", name, err)
		}
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
		await(t, "health without "+name, s.Healthy)
	}
	if err := s.Node("redis-1").Client().Do(within(t), "replicaof", "no", "one").Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Healthy(within(t)); err == nil {
		t.Error("two masters are healthy")
	}
}

func master(t *testing.T, s *topology.Sentinel) *topology.Node {
	t.Helper()
	n, err := s.Master(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// awaitMaster waits until most Sentinels name another master than old, and it is one.
func awaitMaster(t *testing.T, s *topology.Sentinel, old *topology.Node) (promoted *topology.Node) {
	t.Helper()
	start := time.Now()
	await(t, "a failover", func(ctx context.Context) (err error) {
		if promoted, err = s.Master(ctx); err != nil {
			return err
		}
		if promoted == old {
			return errors.New("the old master is still named")
		}
		return nil
	})
	t.Logf("%s took over from %s after %v", promoted.Name(), old.Name(), time.Since(start))
	if got := role(t, promoted); got != "master" {
		t.Fatalf("%s is a %s, want master", promoted.Name(), got)
	}
	return promoted
}

func role(t *testing.T, n *topology.Node) string {
	t.Helper()
	reply, err := n.Client().Do(within(t), "role").Slice()
	if err != nil || len(reply) == 0 {
		t.Fatalf("role of %s: %v, %v", n.Name(), reply, err)
	}
	return fmt.Sprint(reply[0])
}
