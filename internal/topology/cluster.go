package topology

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	redisconf "github.com/honestlimit/ratelimit/deploy/redis"
	"github.com/honestlimit/ratelimit/internal/process"
)

// Slots is the number of slots that a Cluster's masters share.
const Slots = 16384

// Cluster is a Redis Cluster. redis-0 and so on up to the number of masters are masters at first, with equal shares of
// the slots in that order; the replicas follow, those of redis-0 first.
type Cluster struct{ *Set }

// StartCluster starts the nodes, joins them, and waits until every node finds the Cluster whole and every replica is
// online. If ctx ends first, nothing is left running.
func StartCluster(ctx context.Context, cfg Config) (*Cluster, error) {
	cfg.MinReplicas = number(cfg.MinReplicas, 0)
	s, err := newSet(cfg, 1)
	if err != nil {
		return nil, err
	}
	t := &Cluster{Set: s}
	if err := s.open(ctx, "a Cluster", t.build, t.Healthy); err != nil {
		return nil, err
	}
	return t, nil
}

// URL is the address as the service takes it, without credentials.
func (t *Cluster) URL() string { return "cluster://" + strings.Join(addrs(t.Data()), ",") }

// Data are the nodes, whatever their roles.
func (t *Cluster) Data() []*Node { return t.named("redis-") }

// Owner is the node that serves the slot, in the eyes of most running nodes; an error if there is none.
func (t *Cluster) Owner(ctx context.Context, slot int) (*Node, error) {
	votes := map[string]int{}
	nodes := running(t.Data())
	for _, n := range nodes {
		v, err := n.view(ctx)
		if err != nil {
			continue // it is frozen, or on its way down
		}
		votes[v.owners()[slot]]++
	}
	for _, n := range t.Data() {
		if 2*votes[n.Addr()] > len(nodes) {
			return n, nil
		}
	}
	return nil, fmt.Errorf("topology: no majority of nodes knows who serves slot %d", slot)
}

// Replicas are the nodes that follow the master, in the eyes of that master.
func (t *Cluster) Replicas(ctx context.Context, master *Node) ([]*Node, error) {
	v, err := master.view(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(t.Data(), func(n *Node) bool { return v.at(n.Addr()).master != v.myself().id }), nil
}

// AddNode starts a further node and joins it as a master without slots. It waits until every running node knows it, and
// it finds the Cluster whole.
func (t *Cluster) AddNode(ctx context.Context) (*Node, error) {
	old := running(t.Data())
	if len(old) == 0 {
		return nil, errors.New("topology: no node of the Cluster runs")
	}
	n, err := t.launch(ctx, len(t.Data()))
	if err != nil {
		return nil, err
	}
	if err := old[0].meet(ctx, n); err != nil {
		return nil, err
	}
	if err := process.Await(ctx, "every node to know "+n.name, t.acquainted); err != nil {
		return nil, err
	}
	return n, process.Await(ctx, n.name+" to know the Cluster", n.whole)
}

// Healthy checks that every running node, frozen ones among them, finds the Cluster whole, that all name the same
// owners of the slots, and that every running replica is online. Nodes that were killed are no fault.
func (t *Cluster) Healthy(ctx context.Context) error {
	var owners *[Slots]string
	for _, n := range running(t.Data()) {
		if err := n.whole(ctx); err != nil {
			return err
		}
		v, err := n.view(ctx)
		if err != nil {
			return err
		}
		mine := v.owners()
		if owners == nil {
			owners = mine
		}
		if *owners != *mine {
			return fmt.Errorf("topology: %s knows other owners of the slots than the rest", n.name)
		}
	}
	return nil
}

// whole checks what the node thinks of the Cluster, and its link to its master.
func (n *Node) whole(ctx context.Context) error {
	text, err := n.client.ClusterInfo(ctx).Result()
	if err != nil {
		return fmt.Errorf("topology: %s: %w", n.name, err)
	}
	state := lines(text)
	if state["cluster_state"] != "ok" || state["cluster_slots_ok"] != fmt.Sprint(Slots) {
		return fmt.Errorf("topology: %s finds the state %s, and %s slots ok",
			n.name, state["cluster_state"], state["cluster_slots_ok"])
	}
	info, err := n.info(ctx, "replication")
	if err != nil {
		return err
	}
	if info["role"] == "slave" && info["master_link_status"] != "up" {
		return fmt.Errorf("topology: the link of %s to its master is %s", n.name, info["master_link_status"])
	}
	return nil
}

func (t *Cluster) build(ctx context.Context) error {
	masters := t.cfg.Masters
	for i := range masters * (1 + t.cfg.Replicas) {
		n, err := t.launch(ctx, i)
		if err != nil {
			return err
		}
		// Nodes that come with epochs of their own have no collisions to settle.
		if err := n.client.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
			return fmt.Errorf("topology: %s: %w", n.name, err)
		}
		if i < masters {
			first, last := i*Slots/masters, (i+1)*Slots/masters-1
			if err := n.client.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
				return fmt.Errorf("topology: %s: %w", n.name, err)
			}
		}
		if i > 0 {
			if err := t.Data()[0].meet(ctx, n); err != nil {
				return err
			}
		}
	}
	if err := process.Await(ctx, "the nodes to know each other", t.acquainted); err != nil {
		return err
	}
	return t.follow(ctx)
}

func (t *Cluster) launch(ctx context.Context, i int) (*Node, error) {
	return t.run(ctx, dataName(i), recipe{
		main: redisconf.Cluster, templates: []string{redisconf.Cluster, redisconf.Redis, redisconf.ClusterUsers},
		source: dataSource(i), lines: t.lines,
	})
}

func (t *Cluster) lines(spec nodeSpec) []string {
	host, port, _ := net.SplitHostPort(spec.addr)
	_, bus, _ := net.SplitHostPort(spec.bus)
	_, listen, _ := net.SplitHostPort(spec.directBus)
	announced := "cluster-announce-port "
	if t.cfg.TLS != nil {
		announced = "cluster-announce-tls-port "
	}
	lines := []string{
		"cluster-announce-ip " + host, announced + port, "cluster-announce-bus-port " + bus, "cluster-port " + listen,
		fmt.Sprintf("cluster-node-timeout %d", t.cfg.NodeTimeout.Milliseconds()),
		// Masters list their replicas in INFO by these, and not by what the Cluster knows.
		"replica-announce-ip " + host, "replica-announce-port " + port,
	}
	if t.cfg.TLS != nil {
		lines = append(lines, "tls-cluster yes")
	}
	return append(lines, t.dataLines(spec)...)
}

// meet introduces other to the node, and through it to all.
func (n *Node) meet(ctx context.Context, other *Node) error {
	host, port, _ := net.SplitHostPort(other.spec.addr)
	_, bus, _ := net.SplitHostPort(other.spec.bus)
	if err := n.client.Do(ctx, "cluster", "meet", host, port, bus).Err(); err != nil {
		return fmt.Errorf("topology: %s meets %s: %w", n.name, other.name, err)
	}
	return nil
}

// acquainted checks that every running node knows all others by their announced addresses.
func (t *Cluster) acquainted(ctx context.Context) error {
	nodes := running(t.Data())
	for _, n := range nodes {
		v, err := n.view(ctx)
		if err != nil {
			return err
		}
		for _, other := range nodes {
			if entry := v.at(other.Addr()); entry.id == "" || entry.has("handshake") {
				return fmt.Errorf("topology: %s does not know %s", n.name, other.name)
			}
		}
	}
	return nil
}

// follow makes the nodes after the masters their replicas.
func (t *Cluster) follow(ctx context.Context) error {
	nodes := t.Data()
	for i, n := range nodes[t.cfg.Masters:] {
		master, err := nodes[i/t.cfg.Replicas].view(ctx)
		if err != nil {
			return err
		}
		if err := n.client.ClusterReplicate(ctx, master.myself().id).Err(); err != nil {
			return fmt.Errorf("topology: %s: %w", n.name, err)
		}
	}
	return nil
}
