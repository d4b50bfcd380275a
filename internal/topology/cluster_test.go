package topology_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/topology"
)

func TestCluster_KilledMasterComesBackAsReplica(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	s := redistest.Cluster(t, topology.Config{})
	old := owner(t, s, 0)
	if err := old.Kill(); err != nil {
		t.Fatal(err)
	}
	promoted := awaitOwner(t, s, 0, old)
	if err := old.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	await(t, "the old master to follow", func(ctx context.Context) error {
		replicas, err := s.Replicas(ctx, promoted)
		if err != nil {
			return err
		}
		if len(replicas) != 1 || replicas[0] != old {
			return fmt.Errorf("replicas are %v, want the old master alone", replicas)
		}
		return s.Healthy(ctx)
	})
}

func TestCluster_PartitionIsolatesAMaster(t *testing.T) {
	t.Parallel()
	s := redistest.Cluster(t, topology.Config{Gated: true})
	old := owner(t, s, 0)
	listsByGate(t, s, old)
	if err := s.Network().Isolate(old.Name()); err != nil {
		t.Fatal(err)
	}
	awaitOwner(t, s, 0, old)
	await(t, "the old master to stop", func(ctx context.Context) error {
		return refused(old.Client().Set(ctx, keyOf(0), "v", 0).Err(), "CLUSTERDOWN")
	})
	if err := s.Network().Heal(); err != nil {
		t.Fatal(err)
	}
	await(t, "the partition to be forgotten", s.Healthy)
}

// listsByGate checks that INFO of a master names its replica by the address that everybody else knows.
func listsByGate(t *testing.T, s *topology.Cluster, master *topology.Node) {
	t.Helper()
	replicas, err := s.Replicas(within(t), master)
	if err != nil || len(replicas) != 1 {
		t.Fatalf("replicas = %v, %v, want one", replicas, err)
	}
	host, port, _ := net.SplitHostPort(replicas[0].Addr())
	listed, err := master.Client().Info(within(t), "replication").Result()
	if want := "slave0:ip=" + host + ",port=" + port + ","; err != nil || !strings.Contains(listed, want) {
		t.Errorf("INFO = %q, %v, want %q in it", listed, err, want)
	}
}

func TestCluster_SlotMigratesWithItsKeys(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	s := redistest.Cluster(t, topology.Config{Secrets: topology.NewSecrets()})
	from := owner(t, s, 0)
	to, err := s.AddNode(ctx)
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{keyOf(0) + "a", keyOf(0) + "b", keyOf(0) + "c"}
	for _, key := range keys {
		if err := from.Client().Set(ctx, key, key, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	m, err := s.BeginMigration(ctx, 0, from, to)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := m.MoveKeys(ctx, 1); n != 1 || err != nil {
		t.Fatalf("MoveKeys = %v, %v, want 1", n, err)
	}
	// In between some keys are here, and clients are sent on for all others.
	here, asked := 0, 0
	for _, key := range keys {
		err := from.Client().Get(ctx, key).Err()
		switch {
		case err == nil:
			here++
		case strings.HasPrefix(err.Error(), "ASK 0 "+to.Addr()):
			asked++
		}
	}
	if here != 2 || asked != 1 {
		t.Errorf("halfway %d keys answer and %d are asked for elsewhere, want 2 and 1", here, asked)
	}
	if err := m.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if got, err := to.Client().Get(ctx, key).Result(); got != key || err != nil {
			t.Errorf("the new owner says %q, %v of %s", got, err, key)
		}
	}
	if err := s.Reshard(ctx, 3, from, to); err != nil {
		t.Fatal(err)
	}
	for slot := range 4 {
		if got := owner(t, s, slot); got != to {
			t.Errorf("slot %d is served by %s, want %s", slot, got.Name(), to.Name())
		}
	}
	if got := owner(t, s, 4); got != from {
		t.Errorf("slot 4 is served by %s, want %s", got.Name(), from.Name())
	}
	await(t, "all to agree", s.Healthy)
}

func TestCluster_HealthyMissesSlots(t *testing.T) {
	t.Parallel()
	s := redistest.Cluster(t, topology.Config{Replicas: topology.None})
	lost := owner(t, s, 0)
	if err := lost.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, "the loss to be noticed", func(ctx context.Context) error {
		if s.Healthy(ctx) == nil {
			return errors.New("all is well")
		}
		return nil
	})
	if err := lost.Restart(within(t)); err != nil {
		t.Fatal(err)
	}
	await(t, "health", s.Healthy)
}

// keyOf is the start of a key in the slot. Hash tags found by trial.
func keyOf(slot int) string { return map[int]string{0: "rl:{3560}:"}[slot] }

func owner(t *testing.T, s *topology.Cluster, slot int) *topology.Node {
	t.Helper()
	n, err := s.Owner(within(t), slot)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// awaitOwner waits until most nodes name another owner of the slot than old.
func awaitOwner(t *testing.T, s *topology.Cluster, slot int, old *topology.Node) (promoted *topology.Node) {
	t.Helper()
	await(t, "a failover", func(ctx context.Context) (err error) {
		if promoted, err = s.Owner(ctx, slot); err != nil {
			return err
		}
		if promoted == old {
			return errors.New("the old master is still named")
		}
		return nil
	})
	return promoted
}
