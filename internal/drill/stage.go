package drill

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/internal/topology"
)

const (
	// startWithin bounds the start of the topology and of the service.
	startWithin = 90 * time.Second
	// warmUp is left out of the latencies: connections and code are cold.
	warmUp = 500 * time.Millisecond
)

// stage is where a scenario plays: the topology, the service, the load and the watchers.
type stage struct {
	cfg      Config
	scenario scenario
	dir      string
	set      *topology.Set
	// sentinel or cluster is the topology; both are nil if it is one server.
	sentinel *topology.Sentinel
	cluster  *topology.Cluster
	service  *service
	rec      *recorder
	watch    *watcher
	// tenants is the only one of each stream, where it matters on which node its bucket is.
	tenants map[string]string
	// master is the name of the node that is master at first.
	master string
}

// openStage starts topology and service. It leaves nothing behind if that does not work out.
func openStage(ctx context.Context, cfg Config, s scenario, dir string) (*stage, error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	st := &stage{cfg: cfg, scenario: s, dir: dir, master: "redis-0"}
	cfg.OnProgress("starting " + s.on().words())
	if err := st.open(ctx); err != nil {
		return nil, errors.Join(err, st.close())
	}
	return st, nil
}

func (st *stage) open(ctx context.Context) error {
	config := topology.Config{
		Dir: filepath.Join(st.dir, "redis"), Server: st.cfg.Server, DownAfter: st.cfg.DownAfter,
		FailoverTimeout: st.cfg.FailoverTimeout, NodeTimeout: st.cfg.DownAfter, Gated: st.scenario.gated,
		Secrets: topology.NewSecrets(), MinReplicas: st.scenario.minReplicas,
	}
	switch st.scenario.on() {
	case Standalone:
		return st.openStandalone(ctx, config)
	case Cluster:
		return st.openCluster(ctx, config)
	default:
		return st.openSentinel(ctx, config)
	}
}

func (st *stage) openStandalone(ctx context.Context, config topology.Config) error {
	set, err := topology.StartStandalone(ctx, config)
	if err != nil {
		return err
	}
	st.set = set.Set
	return st.serve(ctx, set.URL(), nil, nil)
}

func (st *stage) openSentinel(ctx context.Context, config topology.Config) error {
	set, err := topology.StartSentinel(ctx, config)
	if err != nil {
		return err
	}
	st.sentinel, st.set = set, set.Set
	if st.cfg.Hurry {
		if err := hurry(ctx, set.Sentinels()); err != nil {
			return err
		}
	}
	return st.serve(ctx, set.URL(), []string{"--sentinel-username", set.SentinelLogin().Username},
		[]string{sentinelPasswordVariable + "=" + set.SentinelLogin().Password})
}

func (st *stage) openCluster(ctx context.Context, config topology.Config) error {
	set, err := topology.StartCluster(ctx, config)
	if err != nil {
		return err
	}
	st.cluster, st.set = set, set.Set
	if st.tenants, err = st.place(ctx); err != nil {
		return err
	}
	return st.serve(ctx, set.URL(), nil, nil)
}

// serve starts the service on the topology.
func (st *stage) serve(ctx context.Context, url string, flags, env []string) (err error) {
	st.say("starting the service")
	login := st.set.ServiceLogin()
	st.service, err = startService(ctx, st.cfg, st.dir,
		append(flags, "--redis", url, "--redis-username", login.Username),
		append(env, passwordVariable+"="+login.Password))
	return err
}

// The variables that the service takes its passwords from.
const (
	passwordVariable         = "RATELIMIT_REDIS_PASSWORD"
	sentinelPasswordVariable = "RATELIMIT_SENTINEL_PASSWORD"
)

// close ends everything, in the order in which nothing complains about the end of another.
func (st *stage) close() error {
	var errs []error
	if st.service != nil {
		errs = append(errs, st.service.Stop())
	}
	if st.set != nil {
		errs = append(errs, st.set.Close())
	}
	return errors.Join(errs...)
}

// run offers the load, plays the scenario, and judges what was seen.
func (st *stage) run(ctx context.Context) (*journal.Report, error) {
	offer := st.cfg.offer(st.service.grpc, st.tenants)
	st.rec = newRecorder(st.plan(), offer.streams)
	st.rec.write(func(j *journal.Journal) { j.Warm = warmUp })
	stop, loaded := make(chan struct{}), make(chan error, 1)
	st.look(ctx)
	defer st.watch.stop()
	go func() { loaded <- offer.run(ctx, st.rec, stop) }()
	st.say("offering %.0f requests a second", st.cfg.Rate)
	pause(ctx, st.cfg.Before)
	if err := st.scenario.play(ctx, st); err != nil && ctx.Err() == nil {
		st.rec.check(journal.Check{Name: "the scenario was played", Want: "to its end", Got: err.Error()})
	}
	st.awaitJournal(ctx, st.cfg.SettleWithin, (*journal.Journal).Recovered)
	st.awaitJournal(ctx, 2*rationLeft, (*journal.Journal).Enforced)
	pause(ctx, st.cfg.After)
	close(stop)
	err := <-loaded
	if ctx.Err() != nil {
		return nil, fmt.Errorf("drill: stopped early: %w", context.Cause(ctx))
	}
	return st.judge(ctx, err)
}

// judge closes the journal and keeps the evidence where there is need.
func (st *stage) judge(ctx context.Context, loadErr error) (*journal.Report, error) {
	if err := errors.Join(loadErr, st.service.Exited()); err != nil {
		st.rec.check(journal.Check{Name: "service and load ran to the end", Want: "both", Got: err.Error()})
	}
	j := st.rec.finish()
	j.End = st.rec.now()
	report := journal.Analyse(j)
	if report.Passed && !st.cfg.Keep {
		return report, nil
	}
	folder, err := st.keep(ctx, j, report)
	report.Evidence = folder
	return report, err
}

// look starts all watchers.
func (st *stage) look(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	st.watch = newWatcher(st.rec)
	st.watch.cancel = cancel
	st.watch.service(ctx, st.service)
	st.watch.stalls(ctx)
	st.watch.rounds(ctx, observe(st.dataNodes()))
	if st.cluster != nil {
		st.watch.gossip(ctx, observe(st.dataNodes()))
	}
	if st.sentinel != nil {
		sentinels := observe(st.sentinel.Sentinels())
		st.watch.events(ctx, sentinels)
		st.watch.votes(ctx, topology.MasterName, sentinels)
	}
}

func (st *stage) dataNodes() []*topology.Node {
	if st.cluster != nil {
		return st.cluster.Data()
	}
	if st.sentinel != nil {
		return st.sentinel.Data()
	}
	return st.set.Nodes()
}

func observe(nodes []*topology.Node) []observed {
	list := make([]observed, len(nodes))
	for i, n := range nodes {
		list[i] = observed{name: n.Name(), address: n.Addr(), client: n.Client()}
	}
	return list
}

// plan is the scenario's, with what all have in common.
func (st *stage) plan() journal.Plan {
	p := journal.Plan{
		Category: st.scenario.category, Variant: st.scenario.variant, Title: st.scenario.title,
		Topology: st.scenario.on().words(), Master: st.master, Expect: st.scenario.expect,
		Budget: st.cfg.Budget, Margin: st.cfg.Margin, MaxInFlight: maxInFlight,
		PromoteWithin: st.cfg.promoteWithin(), DecideWithin: st.cfg.DecideWithin, SettleWithin: st.cfg.SettleWithin,
		Loss: replicationLag,
	}
	if st.scenario.adapt != nil {
		st.scenario.adapt(&p, st.cfg)
	}
	return p
}

// await waits until the condition holds, and tells whether it came to that in time.
func (st *stage) await(ctx context.Context, within time.Duration, condition func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := process.Await(ctx, "the drill", func(context.Context) error {
		if condition() {
			return nil
		}
		return errors.New("not yet")
	})
	return err == nil
}

// awaitJournal waits until the journal shows something.
func (st *stage) awaitJournal(ctx context.Context, within time.Duration, shows func(*journal.Journal) bool) {
	st.await(ctx, within, func() (done bool) {
		st.rec.read(func(j *journal.Journal) { done = shows(j) })
		return done
	})
}

// say tells whoever watches.
func (st *stage) say(format string, args ...any) { st.cfg.OnProgress(fmt.Sprintf(format, args...)) }

// do announces an act, records it, and does it: the moment recorded is that before.
func (st *stage) do(kind journal.ActKind, what string, act func() error) error {
	st.say("%s", what)
	st.rec.act(kind, what)
	if err := act(); err != nil {
		return fmt.Errorf("drill: %s: %w", what, err)
	}
	return nil
}
