package topology

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	redisconf "github.com/honestlimit/ratelimit/deploy/redis"
)

// Sentinel is a master with replicas, and Sentinels that watch them. redis-0 is the master at first. Node i of both
// kinds may be thought of as sharing host i: redis-0 and sentinel-0, and so on.
type Sentinel struct{ *Set }

// StartSentinel starts the set and waits until all replicas are online, every Sentinel knows all others and all
// replicas, and CKQUORUM is content. If ctx ends first, nothing is left running.
func StartSentinel(ctx context.Context, cfg Config) (*Sentinel, error) {
	otherwise := 0
	if number(cfg.Replicas, 2) > 1 {
		otherwise = 1
	}
	cfg.MinReplicas = number(cfg.MinReplicas, otherwise)
	s, err := newSet(cfg, 2)
	if err != nil {
		return nil, err
	}
	t := &Sentinel{Set: s}
	if err := s.open(ctx, "a master under Sentinels", t.build, t.Healthy); err != nil {
		return nil, err
	}
	if err := t.hurry(ctx, usualPeriods); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return t, nil
}

// URL is the address as the service takes it, without credentials.
func (t *Sentinel) URL() string {
	return "sentinel://" + strings.Join(addrs(t.Sentinels()), ",") + "/" + MasterName
}

// Data are the data nodes, whatever their roles.
func (t *Sentinel) Data() []*Node { return t.named("redis-") }

// Sentinels are the Sentinels.
func (t *Sentinel) Sentinels() []*Node { return t.named("sentinel-") }

// SentinelLogin is the account of the service on Sentinels; empty without Config.Secrets.
func (t *Sentinel) SentinelLogin() Login { return t.login("ratelimit", (*Secrets).sentinelService) }

// Views asks every Sentinel at once for the master's address, and returns the answers by the Sentinel's name. Those
// that do not answer within 500 ms are missing.
func (t *Sentinel) Views(ctx context.Context) map[string]string {
	sentinels := running(t.Sentinels())
	addrs := make([]string, len(sentinels))
	var asking sync.WaitGroup
	for i, s := range sentinels {
		asking.Go(func() { addrs[i], _ = s.names(ctx) })
	}
	asking.Wait()
	views := map[string]string{}
	for i, s := range sentinels {
		if addrs[i] != "" {
			views[s.name] = addrs[i]
		}
	}
	return views
}

// Master is the data node that most of the Sentinels that answer name; an error if there is no such node.
func (t *Sentinel) Master(ctx context.Context) (*Node, error) {
	views := t.Views(ctx)
	votes := map[string]int{}
	for _, addr := range views {
		votes[addr]++
	}
	for _, n := range t.Data() {
		if 2*votes[n.Addr()] > len(views) {
			return n, nil
		}
	}
	return nil, fmt.Errorf("topology: no majority of Sentinels names a master: %v", views)
}

// Replicas are the data nodes other than Master.
func (t *Sentinel) Replicas(ctx context.Context) ([]*Node, error) {
	master, err := t.Master(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(t.Data(), func(n *Node) bool { return n == master }), nil
}

func (t *Sentinel) build(ctx context.Context) error {
	for i := range 1 + t.cfg.Replicas {
		if err := t.addData(ctx, i); err != nil {
			return err
		}
	}
	for i := range t.cfg.Sentinels {
		if err := t.addSentinel(ctx, i); err != nil {
			return err
		}
	}
	return t.hurry(ctx, hurriedPeriods)
}

func (t *Sentinel) addData(ctx context.Context, i int) error {
	r := t.dataRecipe(i)
	r.lines = func(spec nodeSpec) []string {
		host, port, _ := net.SplitHostPort(spec.addr)
		lines := append(t.dataLines(spec), "replica-announce-ip "+host, "replica-announce-port "+port)
		if i > 0 {
			masterHost, masterPort, _ := net.SplitHostPort(t.Data()[0].Addr())
			lines = append(lines, "replicaof "+masterHost+" "+masterPort)
		}
		return lines
	}
	_, err := t.run(ctx, dataName(i), r)
	return err
}

func (t *Sentinel) addSentinel(ctx context.Context, i int) error {
	host, port, _ := net.SplitHostPort(t.Data()[0].Addr())
	_, err := t.run(ctx, sentinelName(i), recipe{
		main: redisconf.Sentinel, templates: []string{redisconf.Sentinel, redisconf.SentinelUsers},
		args: []string{"--sentinel"}, source: sentinelSource(i), lines: t.sentinelLines,
		values: map[string]string{
			"REDIS_MASTER_HOST": host, "REDIS_MASTER_PORT": port,
			"SENTINEL_QUORUM": fmt.Sprint(t.cfg.Quorum),
		},
	})
	return err
}

func (t *Sentinel) sentinelLines(spec nodeSpec) []string {
	host, port, _ := net.SplitHostPort(spec.addr)
	lines := []string{
		"sentinel announce-ip " + host, "sentinel announce-port " + port,
		fmt.Sprintf("sentinel down-after-milliseconds %s %d", MasterName, t.cfg.DownAfter.Milliseconds()),
		fmt.Sprintf("sentinel failover-timeout %s %d", MasterName, t.cfg.FailoverTimeout.Milliseconds()),
	}
	return append(lines, t.cfg.SentinelLines...)
}

// How often Sentinels look and talk, in milliseconds: while the set gets to know itself, and as Redis has it.
var (
	hurriedPeriods = []any{"info-period", 200, "publish-period", 200}
	usualPeriods   = []any{"info-period", 10000, "publish-period", 2000}
)

func (t *Sentinel) hurry(ctx context.Context, periods []any) error {
	var errs []error
	for _, s := range t.Sentinels() {
		args := append([]any{"sentinel", "debug"}, periods...)
		if err := s.client.Do(ctx, args...).Err(); err != nil {
			errs = append(errs, fmt.Errorf("topology: %s: %w", s.name, err))
		}
	}
	return errors.Join(errs...)
}

func addrs(nodes []*Node) []string {
	all := make([]string, len(nodes))
	for i, n := range nodes {
		all[i] = n.Addr()
	}
	return all
}
