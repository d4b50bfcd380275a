package preflight_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// onThisMachine is what a set cannot help whose nodes are all here, and keep their files in a directory for tests.
var onThisMachine = status{"hosts": preflight.Warn, "replica-hosts": preflight.Warn, "sentinel-config": preflight.Warn}

func TestRun_FindsWhatIsPlantedUnderSentinels(t *testing.T) {
	set := sentinelSet(t)
	for _, n := range set.Sentinels() {
		send(t, n, command{"sentinel", "debug", "info-period", 100})
	}
	cfg := quick(set.URL())
	cfg.Data, cfg.Sentinels, cfg.Admin = access(set.ServiceLogin()), access(set.SentinelLogin()), access(set.OperatorLogin())
	plantAll(t, cfg, set.Nodes(), sentinelPlantings, onThisMachine)

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
			want:  with(onThisMachine, status{"sentinel-config": preflight.Fail}),
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
		want := with(onThisMachine, nil)
		for _, check := range []string{
			"admin", "version", "slow", "acl-excess", "accounts", "persistence", "min-replicas", "replica-read-only",
			"output-buffer", "sentinel-config", "names",
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

func TestRun_FindsWhatIsPlantedInACluster(t *testing.T) {
	set := redistest.Cluster(t, topology.Config{Secrets: topology.NewSecrets(), NodeTimeout: 5 * time.Second})
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

// sentinelSet is patient: no failover may happen while things are planted.
func sentinelSet(t *testing.T) *topology.Sentinel {
	t.Helper()
	return redistest.Sentinel(t, topology.Config{
		Secrets: topology.NewSecrets(), DownAfter: 5 * time.Second, FailoverTimeout: 30 * time.Second,
	})
}
