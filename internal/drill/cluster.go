package drill

import (
	"context"
	"fmt"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/topology"
	"github.com/honestlimit/ratelimit/pkg/policy"
)

const (
	secondMaster = "redis-1"
	// resharded is how many slots change hands in the drill of that name.
	resharded = 200
	// slowMigration is for how long a slot stays half moved, so that clients meet ASK.
	slowMigration = 2 * time.Second
)

func clusterScenarios() []scenario {
	return []scenario{
		{
			category: journal.Cluster, variant: "kill", expect: journal.Failover,
			title: "One of three masters is killed.",
			play: func(ctx context.Context, st *stage) error {
				return st.lose(ctx, "redis-0 is killed", (*topology.Node).Kill, masterNode)
			},
		},
		{
			category: journal.Cluster, variant: "freeze", expect: journal.Failover,
			title: "One of three masters freezes: connections stay open, and nobody answers.",
			play: func(ctx context.Context, st *stage) error {
				return st.freeze(ctx, "redis-0 is frozen", masterNode)
			},
		},
		{
			category: journal.Cluster, variant: "migrate", expect: journal.NoFailover,
			title: "The slot of the busiest bucket moves to another master, key by key.",
			adapt: func(p *journal.Plan, _ Config) { p.Calm = true },
			play:  func(ctx context.Context, st *stage) error { return st.migrate(ctx) },
		},
		{
			category: journal.Cluster, variant: "reshard", expect: journal.NoFailover,
			title: "Slots move to another master, one after the other, the buckets that are asked for among them.",
			adapt: func(p *journal.Plan, _ Config) { p.Calm = true },
			play:  func(ctx context.Context, st *stage) error { return st.reshard(ctx) },
		},
	}
}

// migrate moves the slot of the rationed bucket, and leaves it half moved for a while.
func (st *stage) migrate(ctx context.Context) error {
	slot, err := st.slotOf(ctx, ration)
	if err != nil {
		return err
	}
	var moving *topology.Migration
	err = st.do(journal.Injected, fmt.Sprintf("slot %d begins to move from redis-0 to redis-1", slot), func() (err error) {
		moving, err = st.cluster.BeginMigration(ctx, slot, st.set.Node(masterNode), st.set.Node(secondMaster))
		return err
	})
	if err != nil {
		return err
	}
	pause(ctx, slowMigration)
	return st.do(journal.Mended, "it has moved", func() error { return moving.Finish(ctx) })
}

// reshard moves many slots. They are the lowest, and place puts the buckets there.
func (st *stage) reshard(ctx context.Context) error {
	return st.do(journal.Injected, fmt.Sprintf("%d slots move from redis-0 to redis-1", resharded), func() error {
		err := st.cluster.Reshard(ctx, resharded, st.set.Node(masterNode), st.set.Node(secondMaster))
		st.rec.act(journal.Mended, "they have moved")
		return err
	})
}

// place chooses the tenant of each stream: for bystanders one whose bucket is with another master, for all others one
// whose bucket is in the slots of redis-0 that reshard moves.
func (st *stage) place(ctx context.Context) (map[string]string, error) {
	tenants := map[string]string{}
	for _, s := range st.cfg.streams() {
		for i := 0; tenants[s.Name] == ""; i++ {
			name := fmt.Sprintf("t%d", i)
			slot, err := st.slot(ctx, s.Name, name)
			if err != nil {
				return nil, err
			}
			if fits := slot < resharded; fits != s.Bystander && (fits || slot > topology.Slots/2) {
				tenants[s.Name] = name
			}
		}
	}
	return tenants, nil
}

// slotOf is that of the stream's bucket.
func (st *stage) slotOf(ctx context.Context, stream string) (int, error) {
	return st.slot(ctx, stream, st.tenants[stream])
}

// slot is where the Cluster keeps a tenant's bucket of an endpoint.
func (st *stage) slot(ctx context.Context, endpoint, who string) (int, error) {
	set, err := policy.Parse("policies.yaml", []byte(st.cfg.policies()))
	if err != nil {
		return 0, err
	}
	descriptor := []policy.Entry{{Key: entryKey, Value: endpoint}, {Key: tenant, Value: who}}
	key := set.Domain(domain).Match(descriptor).BucketKey(descriptor)
	slot, err := st.set.Node(masterNode).Client().ClusterKeySlot(ctx, key).Result()
	if err != nil {
		return 0, fmt.Errorf("drill: %w", err)
	}
	return int(slot), nil
}
