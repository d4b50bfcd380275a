package preflight

import (
	"fmt"
	"maps"
	"time"
)

// now is when the facts of these tests were gathered.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// healthySentinel is a master, two replicas and three Sentinels, each on a machine of its own, and nothing wrong.
func healthySentinel() *facts {
	f := &facts{
		setup: Sentinel, now: now, cfg: Config{Decisions: 1000}.withDefaults(), account: "ratelimit",
		master: "10.0.0.1:6379",
	}
	f.cfg.Admin.Username = "operator"
	for i := range 3 {
		n := healthyNode(fmt.Sprintf("10.0.0.%d", i+1))
		if i > 0 {
			follow(n)
		} else {
			lead(n)
		}
		f.nodes = append(f.nodes, n)
	}
	for i := range 3 {
		f.watchers = append(f.watchers, healthyWatcher(fmt.Sprintf("10.0.1.%d", i+1)))
	}
	return f
}

// healthyCluster is three masters on three machines, each with a replica on the next one.
func healthyCluster() *facts {
	f := &facts{setup: Cluster, now: now, cfg: Config{Decisions: 3000}.withDefaults(), account: "ratelimit"}
	f.cfg.Admin.Username = "operator"
	for i := range 6 {
		host := fmt.Sprintf("10.0.0.%d", i%3+1)
		if i >= 3 {
			host = fmt.Sprintf("10.0.0.%d", (i+1)%3+1)
		}
		n := healthyNode(host)
		n.address = fmt.Sprintf("%s:%d", host, 7000+i)
		n.config["min-replicas-to-write"] = "0"
		if i >= 3 {
			follow(n)
		} else {
			lead(n)
			delete(n.info, "slave1")
		}
		n.view = clusterView{
			info:  map[string]string{"cluster_state": "ok", "cluster_current_epoch": "6", "cluster_known_nodes": "6"},
			peers: parsePeers(clusterNodes(i)),
		}
		f.nodes = append(f.nodes, n)
	}
	return f
}

// clusterNodes is CLUSTER NODES of the healthy Cluster as node i sees it.
func clusterNodes(i int) string {
	text := ""
	ranges := [...]string{"0-5460", "5461-10922", "10923-16383"}
	for j := range 6 {
		flags, of, owns, host := "master", "-", "", j%3+1
		if j >= 3 {
			flags, of, host = "slave", fmt.Sprint("id", j-3), (j+1)%3+1
		} else {
			owns = ranges[j]
		}
		if j == i {
			flags = "myself," + flags
		}
		text += fmt.Sprintf("id%d 10.0.0.%d:%d@17000 %s %s 0 0 %d connected %s\n", j, host, 7000+j, flags, of, j, owns)
	}
	return text
}

func healthyServer(host, port string) server {
	return server{
		address: host + ":" + port, dialed: host + ":" + port, host: host, missing: map[part]string{},
		certificate: &certificate{expires: now.Add(90 * 24 * time.Hour)},
		info:        map[string]string{"redis_version": "7.2.4"},
		clients:     map[string][]string{"sentinel": {"sentinel"}, "replica": {"replication"}},
		grants:      []grant{{command: "GET", need: needed}, {command: "FLUSHALL", need: excess, refused: true}},
	}
}

func healthyNode(host string) *node {
	n := &node{server: healthyServer(host, "6379"), config: map[string]string{
		"min-replicas-to-write": "1", "min-replicas-max-lag": "3", "save": "", "appendonly": "no",
		"client-output-buffer-limit": "normal 0 0 0 slave 134217728 67108864 60 pubsub 0 0 0", "masteruser": "replication",
		"latency-monitor-threshold": "10", "replica-read-only": "yes", "cluster-node-timeout": "3000", "cluster-require-full-coverage": "no",
	}}
	maps.Copy(n.info, map[string]string{
		"connected_clients": "20", "maxclients": "2000", "maxmemory": "536870912", "maxmemory_policy": "volatile-ttl",
		"used_memory": "53687091", "latest_fork_usec": "500", "repl_backlog_size": "67108864", "run_id": host,
	})
	return n
}

func lead(n *node) {
	n.role, n.info["role"] = "master", "master"
	n.info["master_repl_offset"] = "1000"
	n.info["slave0"] = "ip=10.0.0.2,port=6379,state=online,offset=1000,lag=1"
	n.info["slave1"] = "ip=10.0.0.3,port=6379,state=online,offset=1000,lag=0"
	n.latency = []time.Duration{time.Millisecond, time.Millisecond, 2 * time.Millisecond}
}

func follow(n *node) {
	n.role, n.info["role"] = "slave", "slave"
	n.info["master_link_status"] = "up"
	n.info["slave_priority"] = "100"
	n.info["slave_repl_offset"] = "1000"
	n.missing[partLatency] = "not measured: not the master"
}

func healthyWatcher(host string) *watcher {
	w := &watcher{
		server: healthyServer(host, "26379"),
		master: map[string]string{
			"ip": "10.0.0.1", "port": "6379", "config-epoch": "4", "quorum": "2", "down-after-milliseconds": "3000",
			"failover-timeout": "30000", "parallel-syncs": "1", "num-other-sentinels": "2",
		},
		quorum: "OK 3 usable Sentinels",
		names:  map[string]string{"resolve-hostnames": "no", "announce-hostnames": "no"},
	}
	w.info["sentinel_tilt"], w.info["config_file"] = "0", "/data/sentinel.conf"
	for i := 2; i <= 3; i++ {
		w.replicas = append(w.replicas, map[string]string{
			"ip": fmt.Sprintf("10.0.0.%d", i), "port": "6379", "flags": "slave", "slave-priority": "100",
			"slave-repl-offset": fmt.Sprint(1000 + i), "runid": fmt.Sprint("run", i), "master-link-status": "ok",
			"info-refresh": "200",
		})
		w.others = append(w.others, map[string]string{
			"ip": fmt.Sprintf("10.0.1.%d", i), "port": "26379", "flags": "sentinel",
		})
	}
	return w
}
