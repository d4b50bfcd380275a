package drill

import (
	"context"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/topology"
)

// Scene is what a Fault plays on. It is for the goroutine that Play was called in.
type Scene struct{ st *stage }

// Set is the topology; redis-0 is its master at first, and in a Cluster that of the buckets that are asked for, but for
// the bystander's.
func (s *Scene) Set() *topology.Set { return s.st.set }

// Do announces an act, records it, and does it: the moment recorded is that before.
func (s *Scene) Do(kind journal.ActKind, what string, act func() error) error {
	return s.st.do(kind, what, act)
}

// Pause waits for d, or until ctx ends.
func (s *Scene) Pause(ctx context.Context, d time.Duration) { pause(ctx, d) }

// Await waits until the condition holds, and tells whether it came to that in time.
func (s *Scene) Await(ctx context.Context, within time.Duration, condition func() bool) bool {
	return s.st.await(ctx, within, condition)
}

// AwaitSwitch waits until somebody announces another master after the fault, for as long as a failover may take.
func (s *Scene) AwaitSwitch(ctx context.Context) { s.st.awaitSwitch(ctx) }

// Each does the same to the nodes at the same time: a machine loses all of its processes at once.
func (s *Scene) Each(do func(*topology.Node) error, names ...string) error {
	return s.st.each(do, names)
}

// Migrate moves the slot of the rationed bucket of a Cluster, which stays half moved for two seconds, and records both.
func (s *Scene) Migrate(ctx context.Context) error { return s.st.migrate(ctx) }

// Reshard moves 200 slots of a Cluster, those of most buckets that are asked for among them, and records it.
func (s *Scene) Reshard(ctx context.Context) error { return s.st.reshard(ctx) }
