package cluster_test

import (
	"strings"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/topology"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// followed has a slot be on its way, and moved, and checks that requests go there.
func followed(t *testing.T, set *topology.Cluster, r *rig) {
	t.Helper()
	const slot = 100
	from, to := owner(t, set, slot), set.Data()[1]
	bucket := charge(tag(slot), yearly(10), 1)
	r.take(bucket)
	m, err := set.BeginMigration(t.Context(), slot, from, to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.MoveKeys(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	r.take(bucket)
	if err := m.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.take(bucket)[0].Remaining; got != 7 {
		t.Errorf("%d tokens are left of 10 after three requests", got)
	}
	if got := r.Stats(); got.Redirects.Ask != 1 || got.Redirects.Moved != 1 || len(got.Shards) != 3 {
		t.Errorf("redirects %+v, %d shards", got.Redirects, len(got.Shards))
	}
}

// TestStore_AsTheServiceMay talks TLS, with the account that deploy/redis gives the service, and no other.
func TestStore_AsTheServiceMay(t *testing.T) {
	certs := redistest.NewCertificates(t)
	set := startCluster(t, topology.Config{
		Replicas: topology.None, Secrets: topology.NewSecrets(),
		TLS: &topology.TLS{
			CAFile: certs.CAFile, ServerCertFile: certs.ServerCertFile, ServerKeyFile: certs.ServerKeyFile,
			ClientCertFile: certs.ClientCertFile, ClientKeyFile: certs.ClientKeyFile,
		},
	})
	cfg := quick(addresses(set)...)
	cfg.PollInterval = time.Hour
	cfg.Access = redisstore.Access{
		Username: set.ServiceLogin().Username, Password: redisstore.Secret(set.ServiceLogin().Password), TLS: true,
		CAFile: certs.CAFile, CertFile: certs.ClientCertFile, KeyFile: certs.ClientKeyFile,
	}
	r := run(t, cfg).serving()
	followed(t, set, r)
	for _, s := range r.Stats().Shards {
		if got := s.Store.LastError; got.Cause != failure.CauseNone {
			t.Errorf("%s: %+v", s.Address, got)
		}
	}
	if got := len(r.Masters()); got != 3 {
		t.Errorf("%d masters, want 3", got)
	}
}

// TestStore_CallsNodesByName uses the names that nodes announce, if that is what the operator prefers.
func TestStore_CallsNodesByName(t *testing.T) {
	set := startCluster(t, topology.Config{
		Replicas:   topology.None,
		RedisLines: []string{"cluster-announce-hostname localhost", "cluster-preferred-endpoint-type hostname"},
	})
	cfg := quick(addresses(set)...)
	cfg.PollInterval = time.Hour
	r := run(t, cfg).serving()
	for _, s := range r.Stats().Shards {
		if !strings.HasPrefix(s.Address, "localhost:") {
			t.Errorf("a shard at %s", s.Address)
		}
	}
	followed(t, set, r)
}
