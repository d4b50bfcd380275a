package preflight_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/preflight"
	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/topology"
)

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

	// Looking at a certificate must not look like an attack.
	stats := server.Client().InfoMap(t.Context(), "stats").Val()["Stats"]
	if stats["rejected_connections"] != "0" {
		t.Errorf("%s connections were rejected", stats["rejected_connections"])
	}

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
		cfg.Timeout, cfg.Total = time.Minute, 200*time.Millisecond
		if got := run(t, cfg); got.Seconds > 5 {
			t.Errorf("%s: took %.1f s, and was given 200 ms", url, got.Seconds)
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
		"nor for one server": {URL: "redis://x", Admin: redisstore.Access{PasswordFile: "/nowhere"}},
	} {
		if _, err := preflight.Run(t.Context(), cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A server that falls silent in the middle of it costs one time-out for each account, and not one for each question.
func TestRun_AsksNoMoreOfWhoFellSilent(t *testing.T) {
	greets := redistest.Healthy(func([]string) string { return "" })
	fake := redistest.NewFake(t, func(args []string) string {
		if args[0] == "ping" || args[0] == "hello" || args[0] == "auth" {
			return greets(args)
		}
		return ""
	})
	cfg := quick("redis://" + fake.Addr())
	cfg.Timeout = 400 * time.Millisecond
	cfg.Admin = redisstore.Access{Username: "operator", Password: "s3cret-and-long"}
	got := run(t, cfg)
	if statuses(got)["reachable"] != preflight.Fail {
		t.Error(printed(t, got))
	}
	// There are some forty questions.
	if got.Seconds > 8 {
		t.Errorf("took %.1f s", got.Seconds)
	}
}

// The replication stream that a decision costs is what the advice on the backlog rests on.
func TestRun_KnowsWhatADecisionCosts(t *testing.T) {
	set := sentinelSet(t)
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

func TestRun_MeasuresWhatIsWritten(t *testing.T) {
	set := sentinelSet(t)
	master, err := set.Master(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for value := strings.Repeat("x", 10_000); ctx.Err() == nil; {
			master.Client().Set(ctx, "load", value, time.Minute)
		}
	})
	cfg := quick(set.URL())
	cfg.Watch = 300 * time.Millisecond
	cfg.Data, cfg.Sentinels, cfg.Admin =
		access(set.ServiceLogin()), access(set.SentinelLogin()), access(set.OperatorLogin())
	got := run(t, cfg)
	stop()
	writing.Wait()
	for _, r := range got.Results {
		if r.Check == "backlog" && strings.Contains(r.Reason, "guess") {
			t.Errorf("%+v", r)
		}
	}
	if !strings.Contains(printed(t, got), "64 MB lasts") {
		t.Error(printed(t, got))
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
			want: with(onThisMachine, status{
				"reachable": preflight.Fail, "majority": preflight.Fail, "sentinels-down": preflight.Warn,
			}),
			check: "majority", reason: "2 answer: no failover after the loss of one", remedy: "run one more",
		})
	})
	t.Run("two Sentinels are lost", func(t *testing.T) {
		if err := set.Node("sentinel-1").Kill(); err != nil {
			t.Fatal(err)
		}
		examine(t, cfg, planting{
			want: with(onThisMachine, status{
				"reachable": preflight.Fail, "majority": preflight.Fail, "sentinels-down": preflight.Warn,
				"ckquorum": preflight.Fail,
			}),
			check: "ckquorum", reason: "NOQUORUM", remedy: "start the missing",
		})
	})
}

// Servers may say what they like: nothing they say may break a run, a terminal or a secret.
func TestRun_BearsWithWhateverServersSay(t *testing.T) {
	const secret = "s3cret-and-long"
	everything := []string{
		"+OK\r\n", "-ERR \x1b[31mred\ttab\r\n", ":1\r\n", "$-1\r\n", "*0\r\n", "*-1\r\n",
		"*2\r\n$1\r\nx\r\n*1\r\n:7\r\n", "$7\r\na:1\r\nb:\r\n", "-ERR got " + secret + "\r\n",
		"-NOPERM this user may not\r\n", "-LOADING not yet\r\n", "-MOVED 1 127.0.0.1:1\r\n", "?what\r\n",
		redistest.HangUp,
	}
	for _, all := range everything {
		for _, scheme := range []string{"redis://", "cluster://", "sentinel://"} {
			fake := redistest.NewFake(t, redistest.Healthy(func([]string) string { return all }))
			rude := redistest.NewFake(t, func([]string) string { return all })
			for _, server := range []*redistest.Fake{fake, rude} {
				url := scheme + server.Addr()
				if scheme == "sentinel://" {
					url += "/mymaster"
				}
				cfg := quick(url)
				cfg.Timeout = 200 * time.Millisecond
				cfg.Data = redisstore.Access{Username: "ratelimit", Password: secret}
				cfg.Sentinels = cfg.Data
				cfg.Admin = redisstore.Access{Username: "operator", Password: secret}
				text := printed(t, run(t, cfg)) // which looks for the passwords
				if strings.ContainsAny(text, "\x1b\t\r") {
					t.Errorf("%q at %s: control characters in:\n%q", all, scheme, text)
				}
			}
		}
	}
}
