package preflight

import (
	"fmt"
	"strings"
	"time"
)

func memoryChecks() []Check {
	return []Check{
		{
			ID: "maxmemory", Setups: everywhere, judge: judgeMaxMemory,
			Looks: "maxmemory of every data node",
			Warns: "there is none: Redis grows until the machine ends it",
			Remedy: fmt.Sprintf("CONFIG SET maxmemory 512mb, say, and the same in redis.conf: a bucket takes about %d bytes, "+
				"and the replication backlog counts too", bucketBytes),
		},
		{
			ID: "eviction", Setups: everywhere, judge: judgeEviction,
			Looks: "maxmemory-policy of every data node",
			Warns: "noeviction (a full server refuses every decision), allkeys-* or volatile-random (buckets in use are lost, " +
				"and start full)",
			Remedy: "CONFIG SET maxmemory-policy volatile-ttl, and the same in redis.conf: it drops the bucket that would be " +
				"full soonest",
		},
		{
			ID: "headroom", Setups: everywhere, judge: judgeHeadroom,
			Looks:  "used_memory of every data node against maxmemory, evicted_keys and evicted_scripts",
			Warns:  fmt.Sprintf("more than %d %% are used, or something has been evicted", memoryWarn),
			Fails:  fmt.Sprintf("more than %d %% are used", memoryFail),
			Remedy: "raise maxmemory, or move to a Cluster",
		},
		{
			ID: "persistence", Setups: everywhere, judge: judgePersistence,
			Looks: "save, appendonly, appendfsync, stop-writes-on-bgsave-error, and how long the last fork took",
			Warns: "snapshots with stop-writes-on-bgsave-error yes (a full disk stops every decision), appendfsync always, or " +
				"a fork that stalled the server for longer than --budget",
			Fails: "the last snapshot or write of the log failed",
			Remedy: `CONFIG SET save "" and appendonly no, and the same in redis.conf: limits are worth seconds, and do not ` +
				"pay for a fork",
		},
	}
}

func judgeMaxMemory(f *facts, v *verdict) {
	for _, n := range f.alive() {
		if !v.knows(&n.server, partInfo) {
			continue
		}
		limit := number(n.info, "maxmemory")
		if limit == 0 {
			v.warn(n.address, "has no maxmemory")
			continue
		}
		v.pass("%s, room for %d buckets", size(limit), limit/bucketBytes)
	}
}

func judgeEviction(f *facts, v *verdict) {
	for _, n := range f.alive() {
		if !v.knows(&n.server, partInfo) {
			continue
		}
		policy := n.info["maxmemory_policy"]
		switch {
		case policy == "volatile-ttl":
			v.pass("volatile-ttl")
		case policy == "noeviction":
			v.warn(n.address, "noeviction: once its memory is full, every decision fails with OOM")
		case strings.HasPrefix(policy, "allkeys-"), policy == "volatile-random":
			v.warn(n.address, "%s drops buckets that are in use, and they start full again", policy)
		default:
			v.pass("%s; volatile-ttl would miss buckets less", policy)
		}
	}
}

func judgeHeadroom(f *facts, v *verdict) {
	for _, n := range f.alive() {
		if !v.knows(&n.server, partInfo) {
			continue
		}
		used, limit := number(n.info, "used_memory"), number(n.info, "maxmemory")
		keys, scripts := number(n.info, "evicted_keys"), number(n.info, "evicted_scripts")
		switch share := percent(used, limit); {
		case share >= memoryFail:
			v.fail(n.address, "%d %% of %s are used", share, size(limit))
		case share >= memoryWarn:
			v.warn(n.address, "%d %% of %s are used", share, size(limit))
		case keys+scripts > 0:
			v.warn(n.address, "%d keys and %d scripts have been evicted since it started", keys, scripts)
		case limit == 0:
			v.pass("%s used, nothing evicted", size(used))
		default:
			v.pass("%d %% of %s used, nothing evicted", share, size(limit))
		}
	}
}

func judgePersistence(f *facts, v *verdict) {
	for _, n := range f.alive() {
		if !v.knows(&n.server, partInfo) || !v.knows(&n.server, partConfig) {
			continue
		}
		judgeDisk(f, v, n)
		saves, logs := n.config["save"] != "", n.config["appendonly"] == "yes"
		switch {
		case !saves && !logs && f.setup == Standalone:
			v.pass("none: buckets start full after a restart, and no fork stalls a decision")
		case !saves && !logs:
			v.pass("none, so no fork stalls a decision; let the supervisor restart a dead master later than its replica is " +
				"promoted, because an empty master empties its replicas")
		default:
			v.pass("buckets survive a restart, and forks cost less than the budget so far")
		}
	}
}

// judgeDisk finds the ways in which a disk stops decisions.
func judgeDisk(f *facts, v *verdict, n *node) {
	saves, logs := n.config["save"] != "", n.config["appendonly"] == "yes"
	if saves && n.info["rdb_last_bgsave_status"] == "err" {
		v.fail(n.address, "the last snapshot failed")
	} else if saves && n.config["stop-writes-on-bgsave-error"] == "yes" {
		r := v.warn(n.address, "takes snapshots, and refuses every decision (MISCONF) once one fails")
		r.Remedy = `CONFIG SET save "", or stop-writes-on-bgsave-error no, and the same in redis.conf`
	}
	if logs && n.info["aof_last_write_status"] == "err" {
		v.fail(n.address, "the last write of the append-only file failed")
	} else if logs && n.config["appendfsync"] == "always" {
		r := v.warn(n.address, "appendfsync always: every decision waits for the disk")
		r.Remedy = "CONFIG SET appendfsync everysec, or appendonly no"
	}
	fork := time.Duration(number(n.info, "latest_fork_usec")) * time.Microsecond
	if fork > f.cfg.Budget {
		v.warn(n.address, "the last fork stalled it for %s, the budget is %s", short(fork), short(f.cfg.Budget))
	}
}
