package preflight

import "slices"

// group is a master and the replicas that it should have.
type group struct {
	// address is the master's; master is nil if it could not be asked.
	address string
	master  *node
	// replicas are all that are known of, healthy or not.
	replicas []*node
}

// groups are the masters, each with its replicas.
func (f *facts) groups() []group {
	if f.setup != Cluster && f.master == "" {
		return nil
	}
	if f.setup != Cluster {
		g := group{address: f.master, master: living(f.node(f.master))}
		for _, n := range f.nodes {
			if n.address != f.master {
				g.replicas = append(g.replicas, n)
			}
		}
		return []group{g}
	}
	var all []group
	peers := f.peers()
	for _, p := range peers {
		if p.masterID != "" || len(p.ranges) == 0 {
			continue
		}
		address := f.addressOf(p)
		g := group{address: address, master: living(f.node(address))}
		for _, r := range peers {
			if n := f.node(f.addressOf(r)); r.masterID == p.id && n != nil {
				g.replicas = append(g.replicas, n)
			}
		}
		all = append(all, g)
	}
	return all
}

// members are the nodes of the group that could be asked, the master first: each of them may lead it tomorrow.
func (g group) members() []*node {
	var all []*node
	if g.master != nil {
		all = append(all, g.master)
	}
	for _, n := range g.replicas {
		if living(n) != nil {
			all = append(all, n)
		}
	}
	return all
}

func living(n *node) *node {
	if n == nil || n.err != "" {
		return nil
	}
	return n
}

// peers are the nodes of a Cluster as the node with the highest epoch sees them, but for whom a replica follows: that
// it knows best itself, and gossip is late.
func (f *facts) peers() []peer {
	var best []peer
	epoch := int64(-1)
	for _, n := range f.alive() {
		if at := number(n.view.info, "cluster_current_epoch"); len(n.view.peers) > 0 && at > epoch {
			best, epoch = n.view.peers, at
		}
	}
	merged := slices.Clone(best)
	for i := range merged {
		n := living(f.node(f.addressOf(merged[i])))
		if n == nil {
			continue
		}
		if self, ok := n.view.self(); ok && self.masterID != "" {
			merged[i].masterID = self.masterID
		}
	}
	return merged
}

// addressOf is the address by which a peer is known here: its name, if it was found under that.
func (f *facts) addressOf(p peer) string {
	if p.name != "" && f.node(p.name) != nil {
		return p.name
	}
	return p.address
}

// follows tells whether the replica follows its master. Who may not ask it takes Sentinel's word; known is false if
// there is none.
func (f *facts) follows(n *node) (healthy, known bool) {
	if n.err != "" || n.leads() {
		return false, true
	}
	if _, missing := n.missing[partInfo]; !missing {
		return n.info["master_link_status"] == "up", true
	}
	for _, w := range f.awake() {
		for _, r := range w.replicas {
			if endpoint(r) == n.address {
				return r["flags"] == "slave" && r["master-link-status"] == "ok", true
			}
		}
	}
	return false, false
}

// healthyOf counts the healthy replicas, and those of which nothing is known.
func (f *facts) healthyOf(g group) (healthy, unknown int) {
	for _, n := range g.replicas {
		switch follows, known := f.follows(n); {
		case !known:
			unknown++
		case follows:
			healthy++
		}
	}
	return healthy, unknown
}
