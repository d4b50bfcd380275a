package preflight

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// part is a group of facts that one command brings, and that a server may keep to itself.
type part uint8

// The parts.
const (
	partRole part = 1 + iota
	partInfo
	partConfig
	partClock
	partScript
	partGrants
	partSlow
	partClients
	partLatency
	partWrites
	partView
	partState
	partMaster
	partReplicas
	partSentinels
	partQuorum
	partFlush
	partNames
)

// facts are all that is known of a set-up. Judging reads nothing else.
type facts struct {
	setup Setup
	now   time.Time
	cfg   Config
	// account is the name of the service's user on data nodes.
	account string
	// shared is set if data nodes and Sentinels know the service by the same password.
	shared bool
	// master is the address that most Sentinels name; empty elsewhere.
	master   string
	nodes    []*node
	watchers []*watcher
}

// server is what is known of any server.
type server struct {
	// address is how it announces itself, dialed where it is reached. host is where dialed points: equal hosts are
	// one machine.
	address, dialed, host string
	// err says why it could not be asked at all.
	err string
	// adminErr says why the admin is not let in.
	adminErr string
	// missing says why a part is not known.
	missing map[part]string
	info    map[string]string
	// open is set if it lets in a stranger without a password.
	open bool
	// certificate is nil without TLS.
	certificate *certificate
	// clients are the accounts of its connections, by the first word of their name.
	clients map[string][]string
	// grants are what its ACL says to our account.
	grants []grant
}

// node is a data node.
type node struct {
	server
	role   string
	config map[string]string
	clock  clock
	script scriptFacts
	slow   slowFacts
	// latency is sorted; only masters are measured.
	latency []time.Duration
	// writes is what a master replicates, in bytes a second.
	writes float64
	// view is what a node of a Cluster knows of it.
	view clusterView
}

// watcher is a Sentinel.
type watcher struct {
	server
	// master, replicas and others are its answers to SENTINEL MASTER, REPLICAS and SENTINELS.
	master           map[string]string
	replicas, others []map[string]string
	// ignorant is set if it does not know the master's name.
	ignorant bool
	// quorum is its answer to SENTINEL CKQUORUM; quorumErr if that was an error.
	quorum, quorumErr string
	// flushErr is empty if SENTINEL FLUSHCONFIG worked.
	flushErr string
	// names are its settings about host names.
	names map[string]string
}

// clock compares a server's clock with ours.
type clock struct {
	// ahead is how far it is ahead, known to half of roundTrip.
	ahead, roundTrip time.Duration
}

// certificate is what a server shows.
type certificate struct {
	expires time.Time
	// err says why it is not to be trusted, or was not shown.
	err string
}

// scriptFacts say whether the service's script can be used.
type scriptFacts struct{ loadErr, runErr string }

// slowFacts are about commands that took long, without their arguments.
type slowFacts struct {
	// count is how many of the newest in the slow log took longer than the budget, within the last hour.
	count int
	worst time.Duration
	// events are what the latency monitor noted above the budget in that time.
	events []string
}

// servers are all of them, data nodes first.
func (f *facts) servers() []*server {
	all := make([]*server, 0, len(f.nodes)+len(f.watchers))
	for _, n := range f.nodes {
		all = append(all, &n.server)
	}
	for _, w := range f.watchers {
		all = append(all, &w.server)
	}
	return all
}

// alive are the data nodes that could be asked.
func (f *facts) alive() []*node {
	return slices.DeleteFunc(slices.Clone(f.nodes), func(n *node) bool { return n.err != "" })
}

// awake are the Sentinels that could be asked.
func (f *facts) awake() []*watcher {
	return slices.DeleteFunc(slices.Clone(f.watchers), func(w *watcher) bool { return w.err != "" })
}

// masters are the data nodes that say they are masters.
func (f *facts) masters() []*node {
	return slices.DeleteFunc(f.alive(), func(n *node) bool { return !n.leads() })
}

// followers are the data nodes that say they are replicas.
func (f *facts) followers() []*node {
	return slices.DeleteFunc(f.alive(), func(n *node) bool { return n.leads() })
}

func (f *facts) node(address string) *node {
	for _, n := range f.nodes {
		if n.address == address {
			return n
		}
	}
	return nil
}

func (n *node) leads() bool { return cmp.Or(n.role, n.info["role"]) == "master" }

// number reads an integer of a reply; 0 if it is none.
func number(m map[string]string, name string) int64 {
	n, _ := strconv.ParseInt(m[name], 10, 64)
	return n
}

func milliseconds(m map[string]string, name string) time.Duration {
	return time.Duration(number(m, name)) * time.Millisecond
}
