package preflight

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// sick is one thing that is wrong in a set-up that is well otherwise.
type sick struct {
	name  string
	setup func() *facts
	spoil func(*facts)
	// check must come to status, with this in its reason.
	check  string
	status Status
	reason string
	// also lists checks that must notice as well; all others must be as they are in health.
	also []string
}

func everyNode(f *facts, change func(*node)) {
	for _, n := range f.nodes {
		change(n)
	}
}

func everyWatcher(f *facts, change func(*watcher)) {
	for _, w := range f.watchers {
		change(w)
	}
}

func setMaster(name, value string) func(*facts) {
	return func(f *facts) { everyWatcher(f, func(w *watcher) { w.master[name] = value }) }
}

func setConfig(name, value string) func(*facts) {
	return func(f *facts) { everyNode(f, func(n *node) { n.config[name] = value }) }
}

func setInfo(name, value string) func(*facts) {
	return func(f *facts) { everyNode(f, func(n *node) { n.info[name] = value }) }
}

// view rewrites what every node of a Cluster sees.
func view(old, replacement string) func(*facts) {
	return func(f *facts) {
		for i, n := range f.nodes {
			n.view.peers = parsePeers(strings.ReplaceAll(clusterNodes(i), old, replacement))
		}
	}
}

func repeat(n int, d time.Duration) []time.Duration { return slices.Repeat([]time.Duration{d}, n) }

var sicknesses = []sick{
	// network
	{
		"a replica is gone", healthySentinel, func(f *facts) { f.nodes[2].err = "cannot be reached: refused" },
		"reachable", Fail, "refused",
		[]string{"replicas", "min-replicas"},
	},
	{
		"the admin's password is wrong", healthySentinel, func(f *facts) { f.nodes[0].adminErr = "does not let the admin in: WRONGPASS" },
		"admin", Warn, "WRONGPASS", nil,
	},
	{"no admin", healthySentinel, func(f *facts) { f.cfg.Admin.Username = "" }, "admin", Skip, "no --admin-username", nil},
	{
		"one server is older", healthySentinel, func(f *facts) { f.nodes[1].info["redis_version"] = "7.0.15" },
		"version", Warn, "7.0.15 on 1", nil,
	},
	{"all are old", healthySentinel, func(f *facts) {
		for _, s := range f.servers() {
			s.info["redis_version"] = "6.2.14"
		}
	}, "version", Warn, "older than what the service is tested with", nil},
	{"too old", healthySentinel, func(f *facts) {
		for _, s := range f.servers() {
			s.info["redis_version"] = "6.0.20"
		}
	}, "version", Fail, "6.0.20", nil},
	{
		"a certificate expires soon", healthySentinel, func(f *facts) { f.watchers[1].certificate.expires = now.Add(29 * 24 * time.Hour) },
		"tls", Warn, "29 days", nil,
	},
	{
		"a certificate is not trusted", healthySentinel, func(f *facts) { f.nodes[1].certificate.err = "has expired" },
		"tls", Fail, "has expired", nil,
	},
	{
		"plain text over the network", healthySentinel, func(f *facts) { f.nodes[1].certificate = nil },
		"tls", Warn, "plain text", nil,
	},
	{
		"a clock is ahead", healthySentinel, func(f *facts) { f.nodes[1].clock.ahead = 150 * time.Millisecond },
		"clock", Warn, "10.0.0.2:6379 is 150ms ahead", nil,
	},
	{"two clocks drift apart", healthySentinel, func(f *facts) {
		f.nodes[1].clock.ahead, f.nodes[2].clock.ahead = 600*time.Millisecond, -600*time.Millisecond
	}, "clock", Fail, "1.2s ahead of that of 10.0.0.3:6379", nil},
	{"slow now and then", healthySentinel, func(f *facts) {
		f.nodes[0].latency = append(repeat(199, time.Millisecond), 21*time.Millisecond)
	}, "latency", Warn, "worst 21ms of 200 calls", nil},
	{
		"half the budget is gone", healthySentinel, func(f *facts) { f.nodes[0].latency = repeat(9, 11*time.Millisecond) },
		"latency", Warn, "p99 11ms", nil,
	},
	{
		"too slow", healthySentinel, func(f *facts) { f.nodes[0].latency = repeat(9, 21*time.Millisecond) },
		"latency", Fail, "p99 21ms", nil,
	},
	{"many connections", healthySentinel, setInfo("connected_clients", "1401"), "connections", Warn, "1401 of 2000", nil},
	{"hardly a connection left", healthySentinel, setInfo("connected_clients", "1801"), "connections", Fail, "1801 of 2000", nil},
	{"connections were rejected", healthySentinel, func(f *facts) {
		everyNode(f, func(n *node) { n.certificate = nil })
		setInfo("rejected_connections", "3")(f)
	}, "connections", Warn, "3 connections", []string{"tls"}},
	{"slow commands", healthySentinel, func(f *facts) {
		f.nodes[0].slow = slowFacts{count: 2, worst: 50 * time.Millisecond}
	}, "slow", Warn, "2 commands took longer than 20ms, the worst 50ms", nil},
	{
		"the latency monitor noted something", healthySentinel, func(f *facts) { f.nodes[0].slow.events = []string{"30ms of fork"} },
		"slow", Warn, "fork", nil,
	},

	// access
	{"a command is missing on a replica", healthySentinel, func(f *facts) {
		f.nodes[2].grants = []grant{{command: "GET of rl:*", need: needed, refused: true}}
	}, "acl", Fail, "may not: GET of rl:*", nil},
	{"a useful command is missing", healthySentinel, func(f *facts) {
		f.watchers[2].grants[0] = grant{command: "SENTINEL MYID", need: useful, refused: true}
	}, "acl", Warn, "can do without", nil},
	{"it could not be tried", healthySentinel, func(f *facts) {
		f.nodes[2].grants[0] = grant{command: "GET", need: needed, doubt: "does not answer"}
	}, "acl", Skip, "does not answer", nil},
	{
		"all-powerful", healthySentinel, func(f *facts) { f.nodes[0].grants[1].refused = false },
		"acl-excess", Warn, "may also: FLUSHALL", nil,
	},
	{"powers unknown", healthySentinel, func(f *facts) {
		f.nodes[0].grants[1] = grant{command: "FLUSHALL", need: excess, doubt: "not permitted"}
	}, "acl-excess", Skip, "not permitted", nil},
	{"open to anybody", healthySentinel, func(f *facts) { f.watchers[0].open = true }, "default-user", Warn, "anybody", nil},
	{
		"Sentinels use our account", healthySentinel, func(f *facts) { f.nodes[1].clients["sentinel"] = []string{"ratelimit"} },
		"accounts", Warn, "Sentinels log in", nil,
	},
	{"replicas use our account", healthySentinel, setConfig("masteruser", "ratelimit"), "accounts", Warn, "replicas log in", nil},
	{"one password for all", healthySentinel, func(f *facts) { f.shared = true }, "accounts", Warn, "same password", nil},
	{"the script fails", healthySentinel, func(f *facts) { f.nodes[1].script.runErr = "NOSCRIPT" }, "script", Fail, "NOSCRIPT", nil},

	// memory
	{"no limit", healthySentinel, setInfo("maxmemory", "0"), "maxmemory", Warn, "no maxmemory", nil},
	{"noeviction", healthySentinel, setInfo("maxmemory_policy", "noeviction"), "eviction", Warn, "OOM", nil},
	{"allkeys", healthySentinel, setInfo("maxmemory_policy", "allkeys-lru"), "eviction", Warn, "allkeys-lru", nil},
	{"at random", healthySentinel, setInfo("maxmemory_policy", "volatile-random"), "eviction", Warn, "volatile-random", nil},
	{"filling up", healthySentinel, setInfo("used_memory", "386547057"), "headroom", Warn, "72 %", nil},
	{"full", healthySentinel, setInfo("used_memory", "499000000"), "headroom", Fail, "92 %", nil},
	{"evicting", healthySentinel, setInfo("evicted_keys", "7"), "headroom", Warn, "7 keys", nil},
	{"a snapshot may stop writes", healthySentinel, func(f *facts) {
		setConfig("save", "3600 1")(f)
		setConfig("stop-writes-on-bgsave-error", "yes")(f)
	}, "persistence", Warn, "MISCONF", nil},
	{"a snapshot failed", healthySentinel, func(f *facts) {
		setConfig("save", "3600 1")(f)
		setInfo("rdb_last_bgsave_status", "err")(f)
	}, "persistence", Fail, "last snapshot failed", nil},
	{"every decision is synced", healthySentinel, func(f *facts) {
		setConfig("appendonly", "yes")(f)
		setConfig("appendfsync", "always")(f)
	}, "persistence", Warn, "waits for the disk", nil},
	{"the log cannot be written", healthySentinel, func(f *facts) {
		setConfig("appendonly", "yes")(f)
		setInfo("aof_last_write_status", "err")(f)
	}, "persistence", Fail, "append-only file failed", nil},
	{"a long fork", healthySentinel, setInfo("latest_fork_usec", "30000"), "persistence", Warn, "30ms", nil},

	// replication
	{
		"the master is none", healthySentinel, func(f *facts) { f.nodes[0].role = "slave" },
		"role", Fail, "is a slave",
		[]string{"replication-link", "latency"},
	},
	{
		"two masters", healthySentinel, func(f *facts) { lead(f.nodes[2]) },
		"role", Fail, "calls itself master as well",
		[]string{"replicas", "min-replicas", "latency"},
	},
	{"nobody names a master", healthySentinel, func(f *facts) { f.master = "" }, "role", Fail, "nobody", []string{
		"replicas", "min-replicas", "backlog", "output-buffer", "replication-lag", "priorities", "replica-hosts",
	}},
	{
		"a master of the Cluster is none", healthyCluster, func(f *facts) { f.nodes[0].role = "slave" },
		"role", Fail, "calls itself slave",
		[]string{"replication-link"},
	},
	{
		"one replica", healthySentinel, func(f *facts) { f.nodes = f.nodes[:2] },
		"replicas", Warn, "one healthy replica of 1",
		[]string{"min-replicas"},
	},
	{
		"no replica", healthySentinel, func(f *facts) { f.nodes = f.nodes[:1] },
		"replicas", Fail, "no healthy replica",
		[]string{"min-replicas", "replication-link", "replica-hosts"},
	},
	{"a link is down", healthySentinel, func(f *facts) {
		f.nodes[2].info["master_link_status"], f.nodes[2].info["master_link_down_since_seconds"] = "down", "90"
	}, "replication-link", Fail, "lost its master for 1m30s", []string{"replicas", "min-replicas"}},
	{
		"a full copy", healthySentinel, func(f *facts) { f.nodes[2].info["master_sync_in_progress"] = "1" },
		"replication-link", Warn, "copying", nil,
	},
	{"late reports", healthySentinel, func(f *facts) {
		f.nodes[0].info["slave1"] = "ip=10.0.0.3,port=6379,state=online,offset=1000,lag=4"
	}, "replication-lag", Warn, "4s ago", nil},
	{"very late reports", healthySentinel, func(f *facts) {
		f.nodes[0].info["slave1"] = "ip=10.0.0.3,port=6379,state=online,offset=1000,lag=11"
	}, "replication-lag", Fail, "11s ago", nil},
	{
		"far behind", healthySentinel, func(f *facts) { f.nodes[0].info["master_repl_offset"] = "9999999" },
		"replication-lag", Warn, "9 MB behind", nil,
	},
	{"writes go on alone", healthySentinel, setConfig("min-replicas-to-write", "0"), "min-replicas", Warn, "a second time", nil},
	{"no replica may be lost", healthySentinel, setConfig("min-replicas-to-write", "2"), "min-replicas", Warn, "the loss of one", nil},
	{"more than there are", healthySentinel, setConfig("min-replicas-to-write", "3"), "min-replicas", Fail, "refuses every", nil},
	{"an impatient master", healthySentinel, setConfig("min-replicas-max-lag", "1"), "min-replicas", Warn, "once a second", nil},
	{"a long split", healthySentinel, setConfig("min-replicas-max-lag", "11"), "min-replicas", Warn, "11 s", nil},
	{
		"a replica that takes writes", healthySentinel, func(f *facts) { f.nodes[1].config["replica-read-only"] = "no" },
		"replica-read-only", Fail, "forgets them", nil,
	},
	{
		"a replica that would write alone as a master", healthySentinel, func(f *facts) { f.nodes[1].config["min-replicas-to-write"] = "0" },
		"min-replicas", Warn, "a second time", nil,
	},
	{
		"a replica with a short backlog", healthySentinel, func(f *facts) { f.nodes[1].info["repl_backlog_size"] = "1048576" },
		"backlog", Warn, "needs 14 MB", nil,
	},
	{"a replica with a small buffer", healthySentinel, func(f *facts) {
		f.nodes[1].config["client-output-buffer-limit"] = "slave 1048576 0 0"
	}, "output-buffer", Warn, "1 MB behind", nil},
	{
		"replicas on the master's machine", healthySentinel, func(f *facts) { f.nodes[1].host, f.nodes[2].host = "10.0.0.1", "10.0.0.1" },
		"replica-hosts", Warn, "on its own machine", nil,
	},
	{"a master that is announced as 127.0.0.1", healthySentinel, func(f *facts) {
		f.watchers[1].replicas[0]["ip"] = "127.0.0.1"
	}, "names", Fail, "127.0.0.1:6379", nil},
	{"a short backlog", healthySentinel, setInfo("repl_backlog_size", "1048576"), "backlog", Warn, "needs 14 MB", nil},
	{
		"a backlog too short for what is written", healthySentinel, func(f *facts) { f.nodes[0].writes = 1 << 20 },
		"backlog", Warn, "at 1 MB/s", nil,
	},
	{"a backlog too short for a guess", healthySentinel, func(f *facts) {
		f.cfg.Decisions = 0
		setInfo("repl_backlog_size", "1048576")(f)
	}, "backlog", Warn, "a guess", nil},
	{
		"a small buffer", healthySentinel, setConfig("client-output-buffer-limit", "slave 1048576 0 0"),
		"output-buffer", Warn, "1 MB behind", nil,
	},
	{
		"a buffer smaller than the backlog", healthySentinel, setConfig("client-output-buffer-limit", "slave 50331648 0 0"),
		"output-buffer", Warn, "before the backlog of 64 MB", nil,
	},
	{
		"a soft limit that is reached", healthySentinel, setConfig("client-output-buffer-limit", "slave 134217728 1048576 60"),
		"output-buffer", Warn, "writes 7 MB in that time", nil,
	},
	{"priority 0 everywhere", healthySentinel, func(f *facts) {
		everyWatcher(f, func(w *watcher) { w.replicas[0]["slave-priority"], w.replicas[1]["slave-priority"] = "0", "0" })
	}, "priorities", Fail, "10.0.0.3:6379 has priority 0", nil},
	{"priority 0 but for one", healthySentinel, func(f *facts) {
		everyWatcher(f, func(w *watcher) { w.replicas[0]["slave-priority"] = "0" })
	}, "priorities", Warn, "only 10.0.0.3:6379", nil},
	{"priority 0 in a Cluster", healthyCluster, setInfo("slave_priority", "0"), "priorities", Fail, "no replica", nil},

	// Sentinel
	{"two Sentinels", healthySentinel, func(f *facts) {
		f.watchers = f.watchers[:2]
		setMaster("num-other-sentinels", "1")(f)
	}, "sentinels", Fail, "2 Sentinels", []string{"majority", "hosts"}},
	{"four Sentinels", healthySentinel, func(f *facts) {
		f.watchers = append(f.watchers, healthyWatcher("10.0.1.4"))
		setMaster("num-other-sentinels", "3")(f)
	}, "sentinels", Warn, "no more than 3", nil},
	{
		"one knows of fewer", healthySentinel, func(f *facts) { f.watchers[2].master["num-other-sentinels"] = "1" },
		"sentinels", Warn, "knows of 2 Sentinels", nil,
	},
	{
		"one is down", healthySentinel, func(f *facts) { f.watchers[0].others[0]["flags"] = "s_down,sentinel,disconnected" },
		"sentinels-down", Warn, "s_down", nil,
	},
	{
		"one is in tilt mode", healthySentinel, func(f *facts) { f.watchers[0].info["sentinel_tilt"] = "1" },
		"sentinels-down", Fail, "tilt", nil,
	},
	{
		"they name different masters", healthySentinel, func(f *facts) { f.watchers[1].master["ip"] = "10.0.0.2" },
		"agreement", Fail, "10.0.0.1:6379 (2), 10.0.0.2:6379 (1)", nil,
	},
	{"one does not know the name", healthySentinel, func(f *facts) {
		f.watchers[1].ignorant, f.watchers[1].master = true, nil
		f.watchers[1].missing[partMaster] = "No such master"
	}, "agreement", Fail, "no master of the name", []string{
		"sentinels", "majority", "hosts", "names", "down-after", "failover-timeout", "parallel-syncs",
	}},
	{
		"settings differ", healthySentinel, func(f *facts) { f.watchers[1].master["parallel-syncs"] = "2" },
		"agreement", Warn, "parallel-syncs differs: 1 (2), 2 (1)",
		[]string{"parallel-syncs"},
	},
	{
		"epochs differ", healthySentinel, func(f *facts) { f.watchers[1].master["config-epoch"] = "3" },
		"agreement", Warn, "config-epoch differs", nil,
	},
	{
		"no quorum", healthySentinel, func(f *facts) { f.watchers[0].quorumErr = "NOQUORUM 1 usable Sentinels" },
		"ckquorum", Fail, "NOQUORUM", nil,
	},
	{"all must agree", healthySentinel, setMaster("quorum", "3"), "majority", Fail, "after the loss of one", []string{"hosts"}},
	{
		"too few answer", healthySentinel, func(f *facts) { f.watchers[1].err, f.watchers[2].err = "gone", "gone" },
		"majority", Fail, "no failover now",
		[]string{"reachable", "hosts"},
	},
	{
		"two dead ones count", healthySentinel, setMaster("num-other-sentinels", "4"), "majority", Fail,
		"3 of 5 Sentinels (quorum 2, majority 3), 3 answer: no failover after the loss of one",
		[]string{"hosts"},
	},
	{
		"a Sentinel with the master", healthySentinel, func(f *facts) { f.watchers[0].host = "10.0.0.1" },
		"hosts", Warn, "a Sentinel shares the master's machine 10.0.0.1", nil,
	},
	{
		"two Sentinels with the master", healthySentinel, func(f *facts) { f.watchers[0].host, f.watchers[1].host = "10.0.0.1", "10.0.0.1" },
		"hosts", Fail, "the loss of the master's machine 10.0.0.1 leaves 1 Sentinel, and a failover takes 2", nil,
	},
	{"two of five on one machine", healthySentinel, func(f *facts) {
		f.watchers = append(f.watchers, healthyWatcher("10.0.1.4"), healthyWatcher("10.0.1.5"))
		setMaster("num-other-sentinels", "4")(f)
		f.watchers[4].host = f.watchers[3].host
	}, "hosts", Warn, "2 Sentinels share machine 10.0.1.4", nil},
	{
		"all on this machine", healthySentinel, func(f *facts) { everyWatcher(f, func(w *watcher) { w.host = loopback }) },
		"hosts", Warn, "this machine", nil,
	},
	{
		"a file that cannot be written", healthySentinel, func(f *facts) { f.watchers[0].flushErr = "ERR Failed to save config file" },
		"sentinel-config", Fail, "Failed to save", nil,
	},
	{
		"a file that does not last", healthySentinel, func(f *facts) { f.watchers[0].info["config_file"] = "/dev/shm/s.conf" },
		"sentinel-config", Warn, "/dev/shm/", nil,
	},
	{"names that are not resolved", healthySentinel, func(f *facts) {
		everyWatcher(f, func(w *watcher) { w.master["ip"] = "redis-0.example" })
	}, "names", Fail, "redis-0.example", nil},
	{"names that are not announced", healthySentinel, func(f *facts) {
		everyWatcher(f, func(w *watcher) { w.names["resolve-hostnames"] = "yes" })
	}, "names", Warn, "announces addresses", nil},
	{"names here, addresses there", healthySentinel, func(f *facts) {
		f.watchers[0].names = map[string]string{"resolve-hostnames": "yes", "announce-hostnames": "yes"}
	}, "names", Warn, "announce-hostnames differs", nil},
	{"the incident", healthySentinel, setMaster("down-after-milliseconds", "30000"), "down-after", Fail, "30s: 1500 budgets", []string{"failover-timeout"}},
	{"slow detection", healthySentinel, setMaster("down-after-milliseconds", "12000"), "down-after", Warn, "12s", nil},
	{"hasty detection", healthySentinel, setMaster("down-after-milliseconds", "500"), "down-after", Warn, "silent for 500ms", nil},
	{
		"detection shorter than pauses", healthySentinel, func(f *facts) { f.nodes[0].latency[2] = 400 * time.Millisecond },
		"down-after", Warn, "a call took 400ms",
		[]string{"latency"},
	},
	{"late retries", healthySentinel, setMaster("failover-timeout", "120000"), "failover-timeout", Warn, "after 4m", nil},
	{"very late retries", healthySentinel, setMaster("failover-timeout", "400000"), "failover-timeout", Fail, "13m20s", nil},
	{"failovers given up early", healthySentinel, setMaster("failover-timeout", "4000"), "failover-timeout", Warn, "4s", nil},
	{"failovers given up at once", healthySentinel, setMaster("failover-timeout", "2000"), "failover-timeout", Fail, "less than down-after", nil},
	{"all copy at once", healthySentinel, setMaster("parallel-syncs", "2"), "parallel-syncs", Warn, "copy at once", nil},

	// Cluster
	{"a slot without an owner", healthyCluster, view("0-5460", "1-5460"), "slots", Fail, "1 of 16384 slots", nil},
	{"a dead owner", healthyCluster, view("master - 0 0 2", "master,fail - 0 0 2"), "slots", Fail, "5461 of 16384", nil},
	{
		"a Cluster that is down", healthyCluster, func(f *facts) { f.nodes[3].view.info["cluster_state"] = "fail" },
		"slots", Fail, "CLUSTERDOWN", nil,
	},
	{"opinions on slots", healthyCluster, func(f *facts) {
		f.nodes[3].view.peers = parsePeers(strings.ReplaceAll(clusterNodes(3), "0-5460", "0-5459"))
	}, "views", Fail, "2 opinions on who owns which slot", nil},
	{
		"opinions on the epoch", healthyCluster, func(f *facts) { f.nodes[3].view.info["cluster_current_epoch"] = "5" },
		"views", Warn, "2 opinions on the epoch", nil,
	},
	{
		"a node is not known to all", healthyCluster, func(f *facts) { f.nodes[3].view.peers = f.nodes[3].view.peers[:5] },
		"views", Warn, "how many nodes", nil,
	},
	{"a move was left open", healthyCluster, view("0-5460", "0-5460 [93->-id1]"), "migration", Warn, "1 slot on the way in or out, such as 93", nil},
	{
		"a master without a replica", healthyCluster, func(f *facts) { f.nodes[3].err = "gone" },
		"cluster-replicas", Fail, "of 1",
		[]string{"reachable", "priorities"},
	},
	{
		"a replica that will not", healthyCluster, func(f *facts) { f.nodes[3].config["cluster-replica-no-failover"] = "yes" },
		"cluster-replicas", Fail, "no healthy replica that could take over", nil,
	},
	{"slow detection in a Cluster", healthyCluster, setConfig("cluster-node-timeout", "15000"), "node-timeout", Warn, "15s", nil},
	{"the incident in a Cluster", healthyCluster, setConfig("cluster-node-timeout", "60000"), "node-timeout", Fail, "1m", nil},
	{"one for all", healthyCluster, setConfig("cluster-require-full-coverage", "yes"), "coverage", Warn, "until its replica", nil},
	{"one for all and no replica", healthyCluster, func(f *facts) {
		setConfig("cluster-require-full-coverage", "yes")(f)
		f.nodes[3].err = "gone"
	}, "coverage", Fail, "one dead shard stops all", []string{"reachable", "cluster-replicas", "priorities"}},
	{
		"two masters on a machine", healthyCluster, func(f *facts) { f.nodes[1].host = f.nodes[0].host },
		"master-hosts", Fail, "takes 2 of 3 masters", nil,
	},
	{
		"a Cluster on this machine", healthyCluster, func(f *facts) { everyNode(f, func(n *node) { n.host = loopback }) },
		"master-hosts", Warn, "this machine",
		[]string{"replica-hosts"},
	},
	{
		"replicas with their masters", healthyCluster, func(f *facts) { f.nodes[3].host = f.nodes[0].host },
		"replica-hosts", Warn, "on its own machine", nil,
	},
}

// worst is the worst status of each check.
func worst(results []Result) map[string]Status {
	all := map[string]Status{}
	for _, r := range results {
		all[r.Check] = max(all[r.Check], r.Status)
	}
	return all
}

func TestJudge_FindsNothingWrongInHealth(t *testing.T) {
	for _, setup := range []func() *facts{healthySentinel, healthyCluster, healthyStandalone} {
		f := setup()
		for _, r := range judge(f) {
			if r.Status != Pass {
				t.Errorf("%v: %+v", f.setup, r)
			}
		}
	}
}

// Gossip is late: a node that has not heard yet whom a replica follows must not make its master look bare.
func TestJudge_BelievesAReplicaAboutItsMaster(t *testing.T) {
	f := healthyCluster()
	f.nodes[0].view.peers = parsePeers(strings.Replace(clusterNodes(0), "slave id1", "master -", 1))
	for _, r := range judge(f) {
		if r.Status != Pass {
			t.Errorf("%+v", r)
		}
	}
}

func healthyStandalone() *facts {
	f := healthySentinel()
	f.setup, f.nodes, f.watchers = Standalone, f.nodes[:1], nil
	return f
}

func TestJudge_FindsWhatIsWrongAndNothingElse(t *testing.T) {
	for _, c := range sicknesses {
		healthy := worst(judge(c.setup()))
		f := c.setup()
		c.spoil(f)
		results := judge(f)
		found := slices.ContainsFunc(results, func(r Result) bool {
			return r.Check == c.check && r.Status == c.status && strings.Contains(r.Reason, c.reason)
		})
		if !found {
			t.Errorf("%s: want %s to %v with %q, have:", c.name, c.check, c.status, c.reason)
			for _, r := range results {
				if r.Check == c.check {
					t.Errorf("  %+v", r)
				}
			}
		}
		for check, status := range worst(results) {
			expected := check == c.check || slices.Contains(c.also, check)
			if changed := status != healthy[check]; changed && !expected {
				t.Errorf("%s: %s is %v as well", c.name, check, status)
			} else if !changed && slices.Contains(c.also, check) {
				t.Errorf("%s: %s does not notice", c.name, check)
			}
		}
	}
}

func TestJudge_HasARemedyForEverythingThatIsWrong(t *testing.T) {
	for _, c := range sicknesses {
		f := c.setup()
		c.spoil(f)
		for _, r := range judge(f) {
			if (r.Remedy != "") != (r.Status >= Warn) {
				t.Errorf("%s: %+v", c.name, r)
			}
		}
	}
}

// Every threshold that the catalogue promises has a sickness that crosses it, and no check warns without a promise.
func TestCatalogue_PromisesWhatTheChecksDo(t *testing.T) {
	warns, fails := map[string]bool{}, map[string]bool{}
	for _, c := range sicknesses {
		f := c.setup()
		c.spoil(f)
		for check, status := range worst(judge(f)) {
			warns[check] = warns[check] || status == Warn
			fails[check] = fails[check] || status == Fail
		}
	}
	seen := map[string]bool{}
	for _, c := range Catalogue() {
		if seen[c.ID] {
			t.Errorf("%s is there twice", c.ID)
		}
		seen[c.ID] = true
		if warns[c.ID] != (c.Warns != "") {
			t.Errorf("%s: warns is %t, promised %q", c.ID, warns[c.ID], c.Warns)
		}
		if fails[c.ID] != (c.Fails != "") {
			t.Errorf("%s: fails is %t, promised %q", c.ID, fails[c.ID], c.Fails)
		}
		if c.Looks == "" || c.Remedy == "" || len(c.Setups) == 0 {
			t.Errorf("%s lacks a description: %+v", c.ID, c)
		}
	}
	for check := range maps.Keys(warns) {
		if !seen[check] {
			t.Errorf("%s is in no catalogue", check)
		}
	}
}

// What a server keeps to itself is skipped, and never taken for good or bad.
func TestJudge_SkipsWhatItMayNotKnow(t *testing.T) {
	for _, setup := range []func() *facts{healthySentinel, healthyCluster, healthyStandalone} {
		f := setup()
		for _, s := range f.servers() {
			for p := partRole; p <= partNames; p++ {
				s.missing[p] = "not permitted"
			}
			s.info = nil
		}
		everyNode(f, func(n *node) {
			n.role, n.config, n.latency, n.view = "", map[string]string{}, nil, clusterView{}
			n.grants = nil
		})
		everyWatcher(f, func(w *watcher) {
			w.master, w.replicas, w.others, w.names, w.grants = nil, nil, nil, nil, nil
		})
		for _, r := range judge(f) {
			public := []string{"reachable", "admin", "tls", "default-user", "script", "replica-hosts"}
			if r.Status != Skip && !slices.Contains(public, r.Check) {
				t.Errorf("%v: %+v", f.setup, r)
			}
		}
	}
}

func TestJudge_SurvivesServersThatSayNothing(t *testing.T) {
	for _, setup := range []func() *facts{healthySentinel, healthyCluster, healthyStandalone} {
		for _, err := range []string{"", "gone"} {
			f := setup()
			for i, n := range f.nodes {
				f.nodes[i] = &node{server: server{address: n.address, err: err, missing: map[part]string{}}}
				f.nodes[i].missing[partLatency] = "not measured"
			}
			for i, w := range f.watchers {
				f.watchers[i] = &watcher{server: server{address: w.address, err: err, missing: map[part]string{}}}
			}
			judge(f)
		}
		judge(&facts{setup: setup().setup, cfg: Config{}.withDefaults()})
	}
}
