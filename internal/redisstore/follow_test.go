package redisstore_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

// mover is a Mover that a test moves.
type mover struct {
	mu       sync.Mutex
	target   redisstore.Target
	replicas []redisstore.Target
	moved    chan struct{}
	suspects map[failure.Cause]int
	unknown  bool // nobody knows where the master is
}

func newMover(s *redistest.Server, replicas ...*redistest.Server) *mover {
	m := &mover{target: target(s), moved: make(chan struct{}), suspects: map[failure.Cause]int{}}
	for _, r := range replicas {
		m.replicas = append(m.replicas, target(r))
	}
	return m
}

func target(s *redistest.Server) redisstore.Target {
	return redisstore.Target{Network: s.Network(), Address: s.Addr()}
}

func (m *mover) Resolve(ctx context.Context) (redisstore.Target, error) {
	if m.unknown {
		<-ctx.Done()
		return redisstore.Target{}, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.target, nil
}

func (m *mover) Moved() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.moved
}

func (m *mover) Suspect(c failure.Cause) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.suspects[c]++
}

func (m *mover) Replicas() []redisstore.Target {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.replicas
}

func (m *mover) suspected(c failure.Cause) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.suspects[c] > 0
}

// move is what Sentinels would announce.
func (m *mover) move(to *redistest.Server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.target = target(to)
	close(m.moved)
	m.moved = make(chan struct{})
}

// decides waits until calls are decided at s, and fails if one is decided elsewhere after that.
func (r *rig) decides(at *redistest.Server) {
	r.t.Helper()
	probe := charge("where", 1)
	redistest.Eventually(r.t, "a call is decided there", func() bool {
		r.cause(r.submit(probe))
		return at.Client().Exists(r.t.Context(), probe.Key).Val() == 1
	})
}

// TestStore_FollowsTheMaster: every call of a steady load succeeds while the master moves from one living server to
// another, and soon all of them are decided at the new one.
func TestStore_FollowsTheMaster(t *testing.T) {
	first, second := redistest.Start(t, redistest.Config{}), redistest.Start(t, redistest.Config{})
	m := newMover(first)
	r := run(t, m, quick()).serving()
	var failed []failure.Cause
	load, stop := context.WithCancel(t.Context())
	var loading sync.WaitGroup
	loading.Go(func() {
		for load.Err() == nil {
			c := r.submit(charge("k", 1))
			<-c.Done()
			if c.Cause() != failure.CauseNone {
				failed = append(failed, c.Cause())
			}
		}
	})
	r.decides(first)
	m.move(second)
	r.decides(second)
	redistest.Eventually(t, "every lane has left the old master", func() bool {
		return len(first.Client().ClientList(t.Context()).Val()) > 0 && r.Stats().Connected == 2 && lanes(t, first) == 0
	})
	stop()
	loading.Wait()
	if len(failed) > 0 {
		t.Errorf("%d calls failed, the first of %v", len(failed), failed[0])
	}
	if got := r.health.count("moved"); got != 1 {
		t.Errorf("the health was told of %d moves: %v", got, r.health.all())
	}
	if got := r.Stats().Address; got != second.Addr() {
		t.Errorf("the address is %s, want that of the new master", got)
	}
}

// lanes is the number of connections to s that have run the script.
func lanes(t *testing.T, s *redistest.Server) int {
	t.Helper()
	return strings.Count(s.Client().ClientList(t.Context()).Val(), "cmd=evalsha")
}

// TestStore_LeavesAHungMaster: what waits on the old master does not keep the lanes from the new one.
func TestStore_LeavesAHungMaster(t *testing.T) {
	for name, lose := range map[string]func(*redistest.Server){
		"frozen": (*redistest.Server).Freeze,
		"dead":   (*redistest.Server).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			first, second := redistest.Start(t, redistest.Config{}), redistest.Start(t, redistest.Config{})
			m := newMover(first)
			cfg := quick()
			// Nothing but the move can free the lanes within the patience of a test.
			cfg.SocketTimeout, cfg.DialTimeout = 10*redistest.Patience, 10*redistest.Patience
			cfg.BackoffMin, cfg.BackoffMax = 10*redistest.Patience, 10*redistest.Patience
			cfg.Budget = 50 * time.Millisecond
			r := run(t, m, cfg).serving()
			lose(first)
			var stuck []*failure.Call
			for range 4 {
				stuck = append(stuck, r.submit(charge("k", 1)))
			}
			m.move(second)
			for _, c := range stuck {
				r.cause(c)
			}
			r.decides(second)
			r.serving()
		})
	}
}

// TestStore_WaitsForTheNewMaster: a server that Sentinels name before it is master is not asked, and is asked as soon
// as it is one.
func TestStore_WaitsForTheNewMaster(t *testing.T) {
	first, second := redistest.Start(t, redistest.Config{}), redistest.Start(t, redistest.Config{})
	host, port, _ := net.SplitHostPort(first.Addr())
	do(t, second.Client(), "replicaof", host, port)
	m := newMover(first)
	r := run(t, m, quick()).serving()
	m.move(second)
	redistest.Eventually(t, "the replica is refused", func() bool { return r.hooks.count("dialed readonly") > 0 })
	do(t, second.Client(), "replicaof", "no", "one")
	r.decides(second)
}

// TestStore_VouchesOnlyForAMasterThatWrites: without enough replicas a new master answers everything but decisions, and
// the breaker is not told to try it.
func TestStore_VouchesOnlyForAMasterThatWrites(t *testing.T) {
	first := redistest.Start(t, redistest.Config{})
	second := redistest.Start(t, redistest.Config{Args: []string{"--min-replicas-to-write", "1"}})
	m := newMover(first)
	r := run(t, m, quick()).serving()
	r.health.set(failure.Open)
	m.move(second)
	redistest.Eventually(t, "every lane is at the new master", func() bool {
		return r.Stats().Address == second.Addr() && lanes(t, second) == 2
	})
	redistest.Eventually(t, "a proof has failed", func() bool { return r.Stats().LastError.Cause == failure.CauseNoReplicas })
	if got := r.health.count("moved"); got != 0 {
		t.Errorf("somebody vouched for it: %v", r.health.all())
	}
	do(t, second.Client(), "config", "set", "min-replicas-to-write", "0")
	redistest.Eventually(t, "the breaker is told of the move", func() bool { return r.health.count("moved") == 1 })
}

// TestStore_ProofWrites: a server that cannot write proves nothing while the breaker is open.
func TestStore_ProofWrites(t *testing.T) {
	server := redistest.Start(t, redistest.Config{})
	r := run(t, at(t, server.URL()), quick()).serving()
	do(t, server.Client(), "config", "set", "min-replicas-to-write", "1")
	r.health.set(failure.Open)
	redistest.Eventually(t, "a proof has failed", func() bool { return r.Stats().LastError.Cause == failure.CauseNoReplicas })
	r.health.reset()
	do(t, server.Client(), "config", "set", "min-replicas-to-write", "0")
	redistest.Eventually(t, "a proof succeeds", func() bool { return r.health.count("proved") > 0 })
	redistest.Eventually(t, "the proof leaves nothing behind", func() bool {
		return server.Client().DBSize(t.Context()).Val() == 0
	})
}

func TestStore_SuspectsTheMaster(t *testing.T) {
	server, other := redistest.Start(t, redistest.Config{}), redistest.Start(t, redistest.Config{})
	m := newMover(server)
	r := run(t, m, quick()).serving()
	host, port, _ := net.SplitHostPort(other.Addr())
	do(t, server.Client(), "replicaof", host, port)
	redistest.Eventually(t, "a demoted master is suspected", func() bool {
		r.ask()
		return m.suspected(failure.CauseReadOnly)
	})
	server.Kill()
	redistest.Eventually(t, "a dead master is suspected", func() bool { return m.suspected(failure.CauseDial) })
}

func TestStore_LoadsTheScriptOnReplicas(t *testing.T) {
	master, replica := redistest.Start(t, redistest.Config{}), redistest.Start(t, redistest.Config{})
	host, port, _ := net.SplitHostPort(master.Addr())
	do(t, replica.Client(), "replicaof", host, port)
	run(t, newMover(master, replica), quick()).serving()
	redistest.Eventually(t, "the replica has the script", func() bool {
		return replica.Client().ScriptExists(t.Context(), redisstore.DecideSHA()).Val()[0]
	})
}

// TestStore_DoesNotWaitForNews: while nobody knows where the master is, calls fail at once, as if it were known to be
// away.
func TestStore_DoesNotWaitForNews(t *testing.T) {
	m := newMover(redistest.Start(t, redistest.Config{}))
	m.unknown = true
	cfg := quick()
	cfg.DialTimeout = 20 * time.Millisecond
	r := run(t, m, cfg)
	r.fails(failure.CauseDial) // waits for each answer with Patience, so one that came only by the deadline would show
	if got := r.health.count("failed dial"); got == 0 {
		t.Errorf("the breaker was not told: %v", r.health.all())
	}
}
