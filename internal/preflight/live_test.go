package preflight_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/preflight"
	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/topology"
)

// patience is how long something that was planted may take to show. Sentinels look every 100 ms here.
const patience = 30 * time.Second

// quick examines in a fraction of a second. Its budget is generous: these tests are not about this machine's speed.
func quick(url string) preflight.Config {
	return preflight.Config{
		URL: url, Budget: 300 * time.Millisecond, Watch: 20 * time.Millisecond, Calls: 20, Pace: time.Millisecond,
	}
}

func access(l topology.Login) redisstore.Access {
	return redisstore.Access{Username: l.Username, Password: redisstore.Secret(l.Password)}
}

// statuses are the worst of each check that is not content.
func statuses(r preflight.Report) map[string]preflight.Status {
	all := map[string]preflight.Status{}
	for _, result := range r.Results {
		if result.Status > preflight.Pass {
			all[result.Check] = max(all[result.Check], result.Status)
		}
	}
	return all
}

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

func TestRun_FindsWhatIsPlantedUnderSentinels(t *testing.T) {
	set := startSentinel(t)
	for _, n := range set.Sentinels() {
		send(t, n, command{"sentinel", "debug", "info-period", 100})
	}
	cfg := quick(set.URL())
	cfg.Data, cfg.Sentinels, cfg.Admin = access(set.ServiceLogin()), access(set.SentinelLogin()), access(set.OperatorLogin())
	// Everything here runs on one machine, in a directory of a test.
	plantAll(t, cfg, set.Nodes(), sentinelPlantings, status{"hosts": preflight.Warn, "sentinel-config": preflight.Warn})

	t.Run("a Sentinel that cannot write its configuration", func(t *testing.T) {
		dir := filepath.Dir(set.Node("sentinel-1").ConfigFile())
		if err := os.Rename(dir, dir+".gone"); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := os.Rename(dir+".gone", dir); err != nil {
				t.Fatal(err)
			}
		}()
		examine(t, cfg, planting{
			want:  status{"hosts": preflight.Warn, "sentinel-config": preflight.Fail},
			check: "sentinel-config", reason: "config", remedy: "a volume",
		})
	})
	t.Run("a name that no Sentinel knows", func(t *testing.T) {
		cfg := cfg
		cfg.URL = strings.Replace(cfg.URL, "/mymaster", "/nobody", 1)
		got := run(t, cfg)
		if s := statuses(got); s["agreement"] != preflight.Fail || s["role"] != preflight.Fail {
			t.Errorf("statuses %v", s)
		}
	})
	t.Run("an admin with another password", func(t *testing.T) {
		cfg := cfg
		cfg.Admin.Password = "wrong"
		if s := statuses(run(t, cfg)); s["admin"] != preflight.Warn || s["min-replicas"] != preflight.Skip {
			t.Errorf("statuses %v", s)
		}
	})
	t.Run("without an admin it says what it may not know", func(t *testing.T) {
		cfg := cfg
		cfg.Admin = redisstore.Access{}
		want := status{"hosts": preflight.Warn}
		for _, check := range []string{
			"admin", "version", "slow", "acl-excess", "accounts", "persistence", "min-replicas", "output-buffer",
			"sentinel-config", "names",
		} {
			want[check] = preflight.Skip
		}
		examine(t, cfg, planting{want: want})
	})
	t.Run("without an admin a missing command is found by trying", func(t *testing.T) {
		cfg := cfg
		cfg.Admin = redisstore.Access{}
		replica, sentinel := set.Node("redis-1"), set.Node("sentinel-1")
		send(t, replica, words("acl setuser ratelimit -time -set"))
		send(t, sentinel, words("acl setuser ratelimit resetchannels"))
		defer func() {
			send(t, replica, words("acl setuser ratelimit +time +set"))
			send(t, sentinel, words("acl setuser ratelimit &*"))
		}()
		found := map[string][]string{}
		for _, r := range run(t, cfg).Results {
			if r.Check == "acl" && r.Status == preflight.Fail {
				found[r.Reason] = r.Nodes
			}
		}
		want := map[string][]string{
			"our account may not: TIME":                       {replica.Addr()},
			"our account may not: SET of rl:*":                {replica.Addr()},
			"our account may not: PSUBSCRIBE to all channels": {sentinel.Addr()},
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a server behind another address", func(t *testing.T) {
		cfg := cfg
		cfg.URL = "sentinel://192.0.2.1:26379/mymaster"
		cfg.NAT = map[string]string{
			"192.0.2.1:26379":          set.Node("sentinel-0").Addr(),
			set.Node("redis-2").Addr(): "127.0.0.1:1",
		}
		got := run(t, cfg)
		if len(got.Servers) != 6 {
			t.Errorf("servers %v, want 6", got.Servers)
		}
		if !slices.ContainsFunc(got.Results, func(r preflight.Result) bool {
			return r.Check == "reachable" && r.Status == preflight.Fail && r.Nodes[0] == set.Node("redis-2").Addr() &&
				strings.Contains(r.Reason, "127.0.0.1:1, where --redis-nat has it")
		}) {
			t.Error(printed(t, got))
		}
	})
	losses(t, set, cfg)
}

func TestRun_FindsWhatIsPlantedAtOneServer(t *testing.T) {
	certificates := redistest.NewCertificates(t) // which are good for a day
	server := redistest.Start(t, redistest.Config{TLS: certificates})
	cfg := quick(server.URL())
	cfg.Data = redisstore.Access{
		CAFile: certificates.CAFile, CertFile: certificates.ClientCertFile, KeyFile: certificates.ClientKeyFile,
	}
	bare := status{
		"admin": preflight.Skip, "acl-excess": preflight.Warn, "default-user": preflight.Warn, "maxmemory": preflight.Warn,
		"eviction": preflight.Warn, "tls": preflight.Warn,
	}
	examine(t, cfg, planting{want: bare, check: "tls", reason: "expires in 0 days", remedy: "new certificate"})

	cfg.Data.CAFile = redistest.NewCertificates(t).CAFile
	got := run(t, cfg)
	if s := statuses(got); s["reachable"] != preflight.Fail || s["tls"] != preflight.Fail {
		t.Errorf("another authority:\n%s", printed(t, got))
	}
}

// What is dead is reported in about the time that one server is waited for.
func TestRun_EndsSoonWhenNobodyAnswers(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // whose kernel accepts, and nobody else
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, url := range []string{
		"redis://" + silent.Addr().String(), "sentinel://" + silent.Addr().String() + ",127.0.0.1:1/mymaster",
		"cluster://" + silent.Addr().String() + ",127.0.0.1:1",
	} {
		cfg := quick(url)
		cfg.Timeout = 200 * time.Millisecond
		got := run(t, cfg)
		if statuses(got)["reachable"] != preflight.Fail || got.Worst != preflight.Fail {
			t.Errorf("%s:\n%s", url, printed(t, got))
		}
		if got.Seconds > 5 {
			t.Errorf("%s: took %.1f s", url, got.Seconds)
		}
	}
}

func TestRun_RejectsWhatMakesNoSense(t *testing.T) {
	for name, cfg := range map[string]preflight.Config{
		"no URL":             {},
		"another scheme":     {URL: "http://x"},
		"no master":          {URL: "sentinel://x"},
		"negative budget":    {URL: "redis://x", Budget: -1},
		"negative calls":     {URL: "redis://x", Calls: -1},
		"no such file":       {URL: "sentinel://x/m", Data: redisstore.Access{PasswordFile: "/nowhere"}},
		"no such admin file": {URL: "cluster://x", Admin: redisstore.Access{PasswordFile: "/nowhere"}},
	} {
		if _, err := preflight.Run(t.Context(), cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The replication stream that a decision costs is what the advice on the backlog rests on.
func TestRun_KnowsWhatADecisionCosts(t *testing.T) {
	set := startSentinel(t)
	master, err := set.Master(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := offset(t, master)
	cfg := quick(set.URL())
	cfg.Data, cfg.Sentinels, cfg.Calls = access(set.ServiceLogin()), access(set.SentinelLogin()), 1000
	cfg.Pace = time.Microsecond
	run(t, cfg)
	if each := float64(offset(t, master)-before) / 1000; each < 65 || each > 130 {
		t.Errorf("a decision adds %.0f bytes to the stream, the checks reckon with 130 at the most", each)
	}
}

func offset(t *testing.T, n *topology.Node) int64 {
	t.Helper()
	info := n.Client().InfoMap(t.Context(), "replication").Val()["Replication"]
	o, err := strconv.ParseInt(info["master_repl_offset"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// losses ends nodes, one after the other.
func losses(t *testing.T, set *topology.Sentinel, cfg preflight.Config) {
	t.Run("a replica that hangs costs one time-out", func(t *testing.T) {
		replica := set.Node("redis-2")
		if err := replica.Freeze(); err != nil {
			t.Fatal(err)
		}
		got := run(t, cfg)
		if err := replica.Thaw(); err != nil {
			t.Fatal(err)
		}
		s := statuses(got)
		if s["reachable"] != preflight.Fail || s["replicas"] != preflight.Warn || s["min-replicas"] != preflight.Warn {
			t.Errorf("statuses %v", s)
		}
		// One second for the node, and nobody else waited for it longer. The rest takes a fraction of a second.
		if got.Seconds > 5 {
			t.Errorf("took %.1f s", got.Seconds)
		}
	})
	t.Run("a Sentinel is lost", func(t *testing.T) {
		if err := set.Node("sentinel-2").Kill(); err != nil {
			t.Fatal(err)
		}
		examine(t, cfg, planting{
			want: status{
				"hosts": preflight.Warn, "sentinel-config": preflight.Warn, "reachable": preflight.Fail,
				"majority": preflight.Fail, "sentinels-down": preflight.Warn,
			},
			check: "majority", reason: "2 answer: no failover after the loss of one", remedy: "run one more",
		})
	})
	t.Run("two Sentinels are lost", func(t *testing.T) {
		if err := set.Node("sentinel-1").Kill(); err != nil {
			t.Fatal(err)
		}
		examine(t, cfg, planting{
			want: status{
				"hosts": preflight.Warn, "sentinel-config": preflight.Warn, "reachable": preflight.Fail,
				"majority": preflight.Fail, "sentinels-down": preflight.Warn, "ckquorum": preflight.Fail,
			},
			check: "ckquorum", reason: "NOQUORUM", remedy: "start the missing",
		})
	})
}

func TestRun_FindsWhatIsPlantedInACluster(t *testing.T) {
	set, err := topology.StartCluster(t.Context(), topology.Config{
		Dir: t.TempDir(), Secrets: topology.NewSecrets(), NodeTimeout: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, set.Set)
	cfg := quick(set.URL())
	cfg.Data, cfg.Admin = access(set.ServiceLogin()), access(set.OperatorLogin())
	healthy := status{"master-hosts": preflight.Warn, "replica-hosts": preflight.Warn}
	plantAll(t, cfg, set.Nodes(), clusterPlantings, healthy)

	t.Run("a move that was left open", func(t *testing.T) {
		from, to := set.Node("redis-0"), set.Node("redis-1")
		id, err := to.Client().Do(t.Context(), "cluster", "myid").Text()
		if err != nil {
			t.Fatal(err)
		}
		send(t, from, command{"cluster", "setslot", 93, "migrating", id})
		examine(t, cfg, planting{
			want:  status{"master-hosts": preflight.Warn, "replica-hosts": preflight.Warn, "migration": preflight.Warn},
			check: "migration", reason: "such as 93", remedy: "STABLE",
		})
		send(t, from, command{"cluster", "setslot", 93, "stable"})
	})
	t.Run("one seed is enough", func(t *testing.T) {
		cfg := cfg
		cfg.URL = "cluster://" + set.Node("redis-4").Addr()
		if got := run(t, cfg); len(got.Servers) != 6 {
			t.Errorf("servers %v, want 6", got.Servers)
		}
	})
}

// plantAll makes each planting, sees exactly its checks change from what they are in health, and undoes it.
func plantAll(t *testing.T, cfg preflight.Config, nodes []*topology.Node, all []planting, healthy status) {
	t.Helper()
	if !t.Run("nothing is wrong", func(t *testing.T) { examine(t, cfg, planting{want: healthy}) }) {
		t.FailNow()
	}
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			on := slices.DeleteFunc(slices.Clone(nodes), func(n *topology.Node) bool {
				return !strings.HasPrefix(n.Name(), p.on)
			})
			if len(on) == 0 {
				t.Fatalf("no node is called %s", p.on)
			}
			for _, n := range on {
				send(t, n, words(p.plant))
			}
			defer func() {
				for _, n := range on {
					send(t, n, words(p.undo))
				}
			}()
			p.want = with(healthy, p.want)
			examine(t, cfg, p)
		})
	}
}

func with(base, more status) status {
	all := status{}
	for _, m := range []status{base, more} {
		for check, s := range m {
			all[check] = s
		}
	}
	return all
}

// examine runs until the report is as it should be, in every check.
func examine(t *testing.T, cfg preflight.Config, p planting) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var report preflight.Report
	err := process.Await(ctx, "the finding", func(context.Context) error {
		report = run(t, cfg)
		if diff := cmp.Diff(p.want, statuses(report)); diff != "" {
			return fmt.Errorf("statuses (-want +got):\n%s", diff)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, printed(t, report))
	}
	if p.check == "" {
		return
	}
	found := slices.ContainsFunc(report.Results, func(r preflight.Result) bool {
		return r.Check == p.check && strings.Contains(r.Reason, p.reason) && strings.Contains(r.Remedy, p.remedy) &&
			r.Remedy != ""
	})
	if !found {
		t.Errorf("%s does not say %q with the remedy %q:\n%s", p.check, p.reason, p.remedy, printed(t, report))
	}
}

func run(t *testing.T, cfg preflight.Config) preflight.Report {
	t.Helper()
	report, err := preflight.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	text := printed(t, report)
	for _, a := range []redisstore.Access{cfg.Data, cfg.Sentinels, cfg.Admin} {
		if a.Password != "" && strings.Contains(text, string(a.Password)) {
			t.Fatalf("the report shows a password:\n%s", text)
		}
	}
	return report
}

func printed(t *testing.T, r preflight.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// send sends a command to a node as the operator. A _ in a word stands for a space.
func send(t *testing.T, n *topology.Node, c command) {
	t.Helper()
	if len(c) == 0 {
		return
	}
	c = slices.Clone(c)
	for i, word := range c {
		if text, ok := word.(string); ok && strings.Contains(text, "_") {
			c[i] = strings.ReplaceAll(text, "_", " ")
		}
	}
	if err := n.Client().Do(context.WithoutCancel(t.Context()), c...).Err(); err != nil {
		t.Fatalf("%s: %v: %v", n.Name(), c, err)
	}
}

func startSentinel(t *testing.T) *topology.Sentinel {
	t.Helper()
	set, err := topology.StartSentinel(t.Context(), topology.Config{
		Dir: t.TempDir(), Secrets: topology.NewSecrets(),
		// No failover may happen while things are planted.
		DownAfter: 5 * time.Second, FailoverTimeout: 30 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, set.Set)
	return set
}

func closeLater(t *testing.T, set *topology.Set) {
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
}
