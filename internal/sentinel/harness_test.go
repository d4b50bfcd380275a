package sentinel_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/sentinel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const name = "mymaster"

// diary writes down what the hooks are told.
type diary struct {
	mu       sync.Mutex
	events   []sentinel.Event
	switches []sentinel.Switch
	quorums  []sentinel.Quorum
	lost     []string
	found    []string
}

func (d *diary) hooks() sentinel.Hooks {
	return sentinel.Hooks{
		Event:    func(_ string, e sentinel.Event) { d.note(func() { d.events = append(d.events, e) }) },
		Switched: func(s sentinel.Switch) { d.note(func() { d.switches = append(d.switches, s) }) },
		Quorum:   func(q sentinel.Quorum) { d.note(func() { d.quorums = append(d.quorums, q) }) },
		Found:    func(s string) { d.note(func() { d.found = append(d.found, s) }) },
		Lost:     func(s string, err error) { d.note(func() { d.lost = append(d.lost, s+": "+err.Error()) }) },
	}
}

func (d *diary) note(write func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	write()
}

func (d *diary) told() []sentinel.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.events)
}

func (d *diary) switched() []sentinel.Switch {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.switches)
}

// rig is a running watcher and what it reports.
type rig struct {
	*sentinel.Watcher
	*diary
	t testing.TB
}

// watch runs a watcher. A test on a machine that is busy with others gives Sentinels more time than the default.
func watch(t testing.TB, cfg sentinel.Config) *rig {
	t.Helper()
	r := &rig{t: t, diary: &diary{}}
	cfg.Hooks = r.hooks()
	if cfg.Master == "" {
		cfg.Master = name
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 2 * time.Second
	}
	var err error
	if r.Watcher, err = sentinel.New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return r
}

// resolve waits for the master's address.
func (r *rig) resolve() string {
	r.t.Helper()
	return r.target().Address
}

// target waits for the master.
func (r *rig) target() redisstore.Target {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), redistest.Patience)
	defer cancel()
	target, err := r.Resolve(ctx)
	if err != nil {
		r.t.Fatalf("Resolve: %v; stats: %+v", err, r.Stats())
	}
	return target
}

// await waits until the stats are as condition wants them.
func (r *rig) await(what string, condition func(s sentinel.Stats) bool) {
	r.t.Helper()
	defer func() {
		if r.t.Failed() {
			r.t.Logf("stats: %+v", r.Stats())
		}
	}()
	redistest.Eventually(r.t, what, func() bool { return condition(r.Stats()) })
}

// play is how a fake Sentinel behaves.
type play struct {
	id       string // 40 hex digits
	master   string // host:port
	epoch    int
	flags    string
	peers    []string // host:port or host:port=id
	replicas []string // host:port
	events   string   // what it says right after the subscription
	password string
	override map[string]string // raw replies by "command subcommand", in lower case
}

// fake is a Sentinel that answers as the play says.
func fake(t testing.TB, p play) *redistest.Fake { return redistest.NewFake(t, acting(p)) }

func acting(p play) redistest.Answer {
	return func(args []string) string {
		if args[0] == "auth" && p.password != "" {
			if args[len(args)-1] == p.password {
				return "+OK\r\n"
			}
			return "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
		}
		command := strings.ToLower(strings.Join(args[:min(len(args), 2)], " "))
		if reply, ok := p.override[command]; ok {
			return reply
		}
		return p.reply(command, args)
	}
}

func (p play) reply(command string, args []string) string {
	if args[0] == "sentinel" && len(args) > 2 && args[2] != name {
		if command == "sentinel get-master-addr-by-name" {
			return "*-1\r\n"
		}
		return "-ERR No such master with that name\r\n"
	}
	switch command {
	case "psubscribe *":
		return array("psubscribe", "*") + p.events
	case "ping":
		return array("pong", "")
	case "sentinel myid":
		return bulk(p.id)
	case "sentinel get-master-addr-by-name":
		host, port, _ := net.SplitHostPort(p.master)
		return array(host, port)
	case "sentinel master":
		return array("name", name, "flags", "master"+p.flags, "config-epoch", fmt.Sprint(p.epoch),
			"num-other-sentinels", fmt.Sprint(len(p.peers)), "quorum", "2")
	case "sentinel sentinels":
		return described(p.peers)
	case "sentinel replicas":
		return described(p.replicas)
	case "sentinel ckquorum":
		return "+OK 1 usable Sentinels. Quorum and failover authorization can be reached\r\n"
	default:
		return "-ERR unknown command\r\n"
	}
}

func described(addresses []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(addresses))
	for _, a := range addresses {
		address, id, _ := strings.Cut(a, "=")
		host, port, _ := net.SplitHostPort(address)
		b.WriteString(array("ip", host, "port", port, "runid", id, "flags", "slave", "master-link-status", "ok"))
	}
	return b.String()
}

func array(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		b.WriteString(bulk(w))
	}
	return b.String()
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func pmessage(channel, payload string) string { return array("pmessage", "*", channel, payload) }

// id is a Sentinel's, made of one digit.
func id(digit string) string { return strings.Repeat(digit, 40) }
