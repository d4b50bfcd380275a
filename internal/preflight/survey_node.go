package preflight

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// settings are what CONFIG GET is asked for: never a password.
var settings = []string{
	"min-replicas-to-write", "min-replicas-max-lag", "client-output-buffer-limit", "save", "appendonly", "appendfsync",
	"stop-writes-on-bgsave-error", "masteruser", "replica-read-only", "latency-monitor-threshold", "cluster-node-timeout",
	"cluster-require-full-coverage", "cluster-replica-no-failover", "cluster-preferred-endpoint-type",
}

// clockReadings is how often TIME is asked; the quickest answer counts.
const clockReadings = 3

// manyClients is the number of connections above which they are not listed: the list would hold the server up.
const manyClients = 2000

// askNode asks a data node everything but what takes time.
func (s *survey) askNode(ctx context.Context, address string) *node {
	n := &node{server: server{address: address}, config: map[string]string{}}
	g := s.visit(ctx, &n.server, false)
	if g == nil {
		return n
	}
	defer g.close()
	if reply, ok := g.askEither(ctx, partRole, "role"); ok {
		if list := words(reply); len(list) > 0 {
			n.role = list[0]
		}
	}
	if reply, ok := g.askEither(ctx, partInfo, "info"); ok {
		n.info = lines(reply)
	}
	for _, setting := range settings {
		reply, ok := g.ask(ctx, partConfig, "config", "get", setting)
		if !ok {
			break
		}
		for name, value := range pairs(reply) {
			n.config[name] = value
		}
	}
	g.askClock(ctx, n)
	g.askScript(ctx, n)
	g.askGrants(ctx, s.accountName(), s.nodeWants())
	g.askSlow(ctx, n)
	g.askClients(ctx, n)
	if s.setup == Cluster {
		g.askView(ctx, n)
	}
	n.open = s.isOpen(ctx, address, false)
	n.err = lateError(g)
	return n
}

// lateError is why the server stopped answering in the middle of it; empty if it did not.
func lateError(g *guest) string {
	if g.ours.dead != nil {
		return reason(g.ours.dead)
	}
	return ""
}

func (s *survey) accountName() string {
	if s.cfg.Data.Username == "" {
		return "default"
	}
	return s.cfg.Data.Username
}

func (g *guest) askClock(ctx context.Context, n *node) {
	var all []clock
	for range clockReadings {
		start := time.Now()
		reply, ok := g.askEither(ctx, partClock, "time")
		took := time.Since(start)
		list := words(reply)
		if !ok || len(list) != 2 {
			return
		}
		seconds, _ := strconv.ParseInt(list[0], 10, 64)
		micros, _ := strconv.ParseInt(list[1], 10, 64)
		theirs := time.Unix(seconds, micros*int64(time.Microsecond))
		all = append(all, clock{ahead: theirs.Sub(start.Add(took / 2)), roundTrip: took})
	}
	n.clock = slices.MinFunc(all, func(a, b clock) int { return int(a.roundTrip - b.roundTrip) })
}

// askScript loads the script as the service does, and runs it on no bucket, which writes nothing.
func (g *guest) askScript(ctx context.Context, n *node) {
	if _, err := g.ours.ask(ctx, "script", "load", g.s.script); err != nil {
		n.script.loadErr = reason(err)
	}
	if _, err := g.ours.ask(ctx, "evalsha", g.s.sha, 0); err != nil {
		n.script.runErr = reason(err)
		if refused := refusal(err); refused != nil && refused.is("NOSCRIPT") && n.script.loadErr != "" {
			n.script.runErr = "nobody has loaded the script, and we cannot: " + n.script.loadErr
		}
	}
}

// askSlow reads what took long. Arguments of commands are not kept.
func (g *guest) askSlow(ctx context.Context, n *node) {
	since := time.Now().Add(n.clock.ahead - time.Hour).Unix()
	budget := g.s.cfg.Budget
	reply, ok := g.ask(ctx, partSlow, "slowlog", "get", 64)
	if !ok {
		return
	}
	entries, _ := reply.([]any)
	for _, entry := range entries {
		fields, _ := entry.([]any)
		if len(fields) < 3 {
			continue
		}
		at, _ := fields[1].(int64)
		micros, _ := fields[2].(int64)
		if took := time.Duration(micros) * time.Microsecond; took > budget && at >= since {
			n.slow.count++
			n.slow.worst = max(n.slow.worst, took)
		}
	}
	reply, err := g.admin.ask(ctx, "latency", "latest")
	if err != nil {
		return // the slow log is enough to judge by
	}
	events, _ := reply.([]any)
	for _, event := range events {
		fields, _ := event.([]any)
		if len(fields) < 3 {
			continue
		}
		at, _ := fields[1].(int64)
		millis, _ := fields[2].(int64)
		if took := time.Duration(millis) * time.Millisecond; took > budget && at >= since {
			n.slow.events = append(n.slow.events,
				fmt.Sprintf("the latency monitor noted %s of %s", short(took), text(fields[0])))
		}
	}
}

// askClients finds out as whom Sentinels and replicas log in.
func (g *guest) askClients(ctx context.Context, n *node) {
	if number(n.info, "connected_clients") > manyClients {
		n.missing[partClients] = fmt.Sprintf("more than %d connections, which are not listed", manyClients)
		return
	}
	reply, ok := g.ask(ctx, partClients, "client", "list")
	if !ok {
		return
	}
	n.clients = parseClients(text(reply))
}

// parseClients reads CLIENT LIST: the accounts of replicas, and of connections by the first word of their name.
// Sentinels call theirs sentinel-...
func parseClients(list string) map[string][]string {
	accounts := map[string][]string{}
	for line := range strings.Lines(list) {
		fields := map[string]string{}
		for _, pair := range strings.Fields(line) {
			name, value, _ := strings.Cut(pair, "=")
			fields[name] = value
		}
		kind, _, _ := strings.Cut(fields["name"], "-")
		if strings.Contains(fields["flags"], "S") {
			kind = "replica"
		}
		if kind != "" && !slices.Contains(accounts[kind], fields["user"]) {
			accounts[kind] = append(accounts[kind], fields["user"])
		}
	}
	return accounts
}

func (g *guest) askView(ctx context.Context, n *node) {
	if reply, ok := g.askEither(ctx, partState, "cluster", "info"); ok {
		n.view.info = lines(reply)
	}
	if reply, ok := g.askEither(ctx, partView, "cluster", "nodes"); ok {
		n.view.peers = parsePeers(text(reply))
	}
}
