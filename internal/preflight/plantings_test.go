package preflight_test

import (
	"strings"

	"github.com/honestlimit/ratelimit/internal/preflight"
)

// command is sent to a node as the operator.
type command []any

func words(text string) command {
	var c command
	for word := range strings.FieldsSeq(text) {
		c = append(c, strings.ReplaceAll(word, `""`, ""))
	}
	return c
}

// planting is one misconfiguration, made and undone on a running set.
type planting struct {
	name string
	// on names the nodes, by the beginning of their names, that do what plant says, and later what undo says.
	on, plant, undo string
	// want is what changes in the report, and nothing else may.
	want map[string]preflight.Status
	// say are parts of the reason and of the remedy of the first of want's checks.
	check, reason, remedy string
}

type status = map[string]preflight.Status

var sentinelPlantings = []planting{
	{
		"the incident: 30 s to detect a dead master", "sentinel-",
		"sentinel set mymaster down-after-milliseconds 30000", "sentinel set mymaster down-after-milliseconds 5000",
		status{"down-after": preflight.Fail, "failover-timeout": preflight.Warn},
		"down-after", "30s", "SENTINEL SET",
	},
	{
		"ten seconds and more", "sentinel-",
		"sentinel set mymaster down-after-milliseconds 12000", "sentinel set mymaster down-after-milliseconds 5000",
		status{"down-after": preflight.Warn},
		"down-after", "12s", "3000",
	},
	{
		"failovers are retried late", "sentinel-",
		"sentinel set mymaster failover-timeout 400000", "sentinel set mymaster failover-timeout 30000",
		status{"failover-timeout": preflight.Fail},
		"failover-timeout", "13m20s", "30000",
	},
	{
		"all replicas copy at once", "sentinel-",
		"sentinel set mymaster parallel-syncs 5", "sentinel set mymaster parallel-syncs 1",
		status{"parallel-syncs": preflight.Warn},
		"parallel-syncs", "at once", "parallel-syncs 1",
	},
	{
		"every Sentinel must agree", "sentinel-",
		"sentinel set mymaster quorum 3", "sentinel set mymaster quorum 2",
		status{"majority": preflight.Fail},
		"majority", "takes 3 of 3", "quorum 2",
	},
	{
		"one Sentinel has another quorum", "sentinel-2",
		"sentinel set mymaster quorum 1", "sentinel set mymaster quorum 2",
		status{"agreement": preflight.Warn},
		"agreement", "quorum differs: 1 (1), 2 (2)", "every Sentinel",
	},
	{
		"one Sentinel resolves names", "sentinel-1",
		"sentinel config set resolve-hostnames yes", "sentinel config set resolve-hostnames no",
		status{"names": preflight.Warn},
		"names", "resolve-hostnames differs", "announce-hostnames",
	},
	{
		"a Sentinel lets anybody in", "sentinel-0",
		"acl setuser default on nopass", "acl setuser default off resetpass",
		status{"default-user": preflight.Warn},
		"default-user", "anybody", "ACL SETUSER default off",
	},
	{
		"a Sentinel's account misses a command that is only useful", "sentinel-0",
		"acl setuser ratelimit -sentinel|myid", "acl setuser ratelimit +sentinel|myid",
		status{"acl": preflight.Warn},
		"acl", "SENTINEL MYID", "deploy/redis",
	},
	{
		"a Sentinel's account misses a command", "sentinel-0",
		"acl setuser ratelimit -sentinel|sentinels", "acl setuser ratelimit +sentinel|sentinels",
		status{"acl": preflight.Fail},
		"acl", "SENTINEL SENTINELS", "deploy/redis",
	},
	{
		"no replica may be promoted", "redis-", // the master's own does not matter
		"config set replica-priority 0", "config set replica-priority 100",
		status{"priorities": preflight.Fail},
		"priorities", "has priority 0", "replica-priority 100",
	},
	{
		"only one replica may be promoted", "redis-1",
		"config set replica-priority 0", "config set replica-priority 100",
		status{"priorities": preflight.Warn},
		"priorities", "only ", "replica-priority 100",
	},
	{
		"the master writes without replicas", "redis-",
		"config set min-replicas-to-write 0", "config set min-replicas-to-write 1",
		status{"min-replicas": preflight.Warn},
		"min-replicas", "a second time", "min-replicas-to-write 1",
	},
	{
		"no replica may be lost", "redis-",
		"config set min-replicas-to-write 2", "config set min-replicas-to-write 1",
		status{"min-replicas": preflight.Warn},
		"min-replicas", "loss of one", "min-replicas-to-write 1",
	},
	{
		"more replicas demanded than there are", "redis-",
		"config set min-replicas-to-write 3", "config set min-replicas-to-write 1",
		status{"min-replicas": preflight.Fail, "script": preflight.Fail, "latency": preflight.Skip},
		"script", "NOREPLICAS", "",
	},
	{
		"a replica that would write without replicas if it led", "redis-1",
		"config set min-replicas-to-write 0", "config set min-replicas-to-write 1",
		status{"min-replicas": preflight.Warn},
		"min-replicas", "a second time", "every data node",
	},
	{
		"a replica that takes writes", "redis-2",
		"config set replica-read-only no", "config set replica-read-only yes",
		status{"replica-read-only": preflight.Fail},
		"replica-read-only", "forgets them", "replica-read-only yes",
	},
	{
		"a short backlog", "redis-",
		"config set repl-backlog-size 1mb", "config set repl-backlog-size 64mb",
		status{"backlog": preflight.Warn},
		"backlog", "1 MB lasts 8.1s", "repl-backlog-size",
	},
	{
		"a small buffer for replicas", "redis-",
		"config set client-output-buffer-limit replica_1mb_1mb_10",
		"config set client-output-buffer-limit replica_128mb_64mb_60",
		status{"output-buffer": preflight.Warn},
		"output-buffer", "1 MB behind", "client-output-buffer-limit",
	},
	{
		"no limit of memory", "redis-0",
		"config set maxmemory 0", "config set maxmemory 512mb",
		status{"maxmemory": preflight.Warn},
		"maxmemory", "no maxmemory", "CONFIG SET maxmemory",
	},
	{
		"a full server refuses decisions", "redis-2",
		"config set maxmemory-policy noeviction", "config set maxmemory-policy volatile-ttl",
		status{"eviction": preflight.Warn},
		"eviction", "OOM", "volatile-ttl",
	},
	{
		"buckets in use are evicted", "redis-",
		"config set maxmemory-policy allkeys-lru", "config set maxmemory-policy volatile-ttl",
		status{"eviction": preflight.Warn},
		"eviction", "allkeys-lru", "volatile-ttl",
	},
	{
		"a snapshot that fails stops decisions", "redis-0",
		`config set save 36000_1 stop-writes-on-bgsave-error yes`, `config set save "" stop-writes-on-bgsave-error yes`,
		status{"persistence": preflight.Warn},
		"persistence", "MISCONF", "stop-writes-on-bgsave-error no",
	},
	{
		"every decision waits for the disk", "redis-1",
		"config set appendonly yes appendfsync always", "config set appendonly no appendfsync everysec",
		status{"persistence": preflight.Warn},
		"persistence", "waits for the disk", "everysec",
	},
	{
		"a replica's account misses a command of the script", "redis-2",
		"acl setuser ratelimit -get", "acl setuser ratelimit +get",
		status{"acl": preflight.Fail},
		"acl", "may not: GET of rl:*", "on every node",
	},
	{
		"an account that sees other keys", "redis-1",
		"acl setuser ratelimit ~*", "acl setuser ratelimit resetkeys ~rl:*",
		status{"acl-excess": preflight.Warn},
		"acl-excess", "GET of any key", "narrow",
	},
	{
		"an account that may empty the server", "redis-0",
		"acl setuser ratelimit +flushall", "acl setuser ratelimit -flushall",
		status{"acl-excess": preflight.Warn},
		"acl-excess", "FLUSHALL", "narrow",
	},
	{
		"an account that cannot use the script", "redis-0",
		"acl setuser ratelimit -evalsha", "acl setuser ratelimit +evalsha",
		status{"acl": preflight.Fail, "script": preflight.Fail, "latency": preflight.Skip},
		"script", "EVALSHA", "+evalsha",
	},
	{
		"a replica does not know our account", "redis-1",
		"acl setuser ratelimit off", "acl setuser ratelimit on",
		status{"reachable": preflight.Fail, "replicas": preflight.Warn, "min-replicas": preflight.Warn},
		"reachable", "WRONGPASS", "create the account",
	},
	{
		"a data node lets anybody in", "redis-1",
		"acl setuser default on nopass", "acl setuser default off resetpass",
		status{"default-user": preflight.Warn},
		"default-user", "anybody", "ACL SETUSER default off",
	},
	{
		"replicas log in as the service", "redis-1",
		"config set masteruser ratelimit", "config set masteruser replication",
		status{"accounts": preflight.Warn},
		"accounts", `"ratelimit"`, "masteruser",
	},
	{
		"a command took longer than the budget", "redis-0",
		"eval " + busy + " 0", "slowlog reset",
		status{"slow": preflight.Warn},
		"slow", "1 command took longer than 300ms", "SLOWLOG GET",
	},
}

// busy is a script, in one word, that takes 400 ms of the server's time.
const busy = `local_t=redis.call('TIME')_local_s=t[1]*1000000+t[2]_while_true_do_t=redis.call('TIME')_` +
	`if_t[1]*1000000+t[2]-s>400000_then_return_1_end_end`

var clusterPlantings = []planting{
	{
		"the incident in a Cluster", "redis-",
		"config set cluster-node-timeout 30000", "config set cluster-node-timeout 5000",
		status{"node-timeout": preflight.Fail},
		"node-timeout", "30s", "cluster-node-timeout 3000",
	},
	{
		"one dead shard stops all", "redis-1",
		"config set cluster-require-full-coverage yes", "config set cluster-require-full-coverage no",
		status{"coverage": preflight.Warn},
		"coverage", "stops all", "cluster-require-full-coverage no",
	},
	{
		"a replica that will not take over", "redis-3",
		"config set cluster-replica-no-failover yes", "config set cluster-replica-no-failover no",
		status{"cluster-replicas": preflight.Fail},
		"cluster-replicas", "could take over", "add-node",
	},
	{
		"a node whose account misses a command", "redis-4",
		"acl setuser ratelimit -asking", "acl setuser ratelimit +asking",
		status{"acl": preflight.Fail},
		"acl", "ASKING", "on every node",
	},
	{
		"a slot that one node knows no owner of", "redis-5",
		"cluster delslots 7", "", // gossip brings it back
		status{"views": preflight.Fail},
		"views", "2 opinions", "partition",
	},
}
