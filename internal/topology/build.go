package topology

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	redisconf "github.com/honestlimit/ratelimit/deploy/redis"
	"github.com/honestlimit/ratelimit/internal/process"
)

// clientTimeout is what this package's own clients wait for a dial, a read or a write: nodes that are frozen on purpose
// must not hold an observer up for long.
const clientTimeout = 500 * time.Millisecond

// openSecrets fill the templates of a set without secrets; its accounts take any password.
var openSecrets = Secrets{
	Service: "open", SentinelService: "open", Replication: "open", Sentinel: "open", Peer: "open", Operator: "open",
}

// recipe is what kinds of nodes differ in.
type recipe struct {
	main      string            // the template that the server is started with
	templates []string          // all of them, main included
	values    map[string]string // beyond passwords
	args      []string          // after the configuration's path
	source    string            // the address that it connects from in a gated set
	lines     func(nodeSpec) []string
}

// run makes a node, with its gates, its files and its client, starts its process and waits until it answers.
func (s *Set) run(ctx context.Context, name string, r recipe) (*Node, error) {
	n := &Node{name: name}
	if err := s.prepare(n, r); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(n.spec.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	n.log = log
	p, err := n.launch()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	n.client = newClient(n.spec.direct, s.OperatorLogin(), s.tls)
	s.mu.Lock()
	s.nodes = append(s.nodes, n)
	s.mu.Unlock()
	return n, n.ready(ctx, p)
}

// prepare finds addresses and writes files.
func (s *Set) prepare(n *Node, r recipe) error {
	addrs, err := process.FreeAddresses(2)
	if err != nil {
		return err
	}
	n.spec = nodeSpec{
		program: s.cfg.Server, config: s.path(n.name, r.main), log: s.path(n.name + ".log"),
		addr: addrs[0], direct: addrs[0], bus: addrs[1], directBus: addrs[1],
	}
	n.spec.args = append([]string{n.spec.config}, r.args...)
	if s.cfg.Gated {
		if err := s.gate(n, r.source); err != nil {
			return err
		}
	}
	files, err := s.files(n.name, n.spec, r)
	if err != nil {
		return err
	}
	return n.spec.write(files)
}

// gate puts one in front of the node, and one in front of its bus.
func (s *Set) gate(n *Node, source string) error {
	s.network.call(source, n.name)
	for _, upstream := range []string{n.spec.direct, n.spec.directBus} {
		g, err := s.network.add(n.name, upstream)
		if err != nil {
			return err
		}
		n.gates = append(n.gates, g)
	}
	n.spec.addr, n.spec.bus = n.gates[0].addr(), n.gates[1].addr()
	return nil
}

// files renders the templates, and puts the lines of this set at the end of the main one, where they override.
func (s *Set) files(name string, spec nodeSpec, r recipe) (map[string]string, error) {
	values := s.values()
	maps.Copy(values, r.values)
	values["REDIS_DIR"] = filepath.Dir(spec.config)
	files := map[string]string{}
	for _, template := range r.templates {
		text, err := redisconf.Render(template, values)
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(template, ".acl") && s.cfg.Secrets == nil {
			text = openACL()
		}
		files[template] = text
	}
	_, port, _ := net.SplitHostPort(spec.direct)
	lines := slices.Concat(
		[]string{"\n# This set's own.", "bind 127.0.0.1", "daemonize no", `logfile ""`},
		s.cfg.TLS.lines(port), r.lines(spec),
	)
	if s.cfg.Gated {
		lines = append(lines, "bind-source-addr "+r.source)
	}
	lines = append(lines, s.cfg.NodeLines[name]...)
	files[r.main] += strings.Join(lines, "\n") + "\n"
	return files, nil
}

func (s *Set) values() map[string]string {
	secrets := s.cfg.Secrets
	if secrets == nil {
		secrets = &openSecrets
	}
	return map[string]string{
		"RATELIMIT_REDIS_PASSWORD": secrets.Service, "RATELIMIT_SENTINEL_PASSWORD": secrets.SentinelService,
		"REPLICATION_PASSWORD": secrets.Replication, "SENTINEL_REDIS_PASSWORD": secrets.Sentinel,
		"SENTINEL_PEER_PASSWORD": secrets.Peer, "OPERATOR_PASSWORD": secrets.Operator,
	}
}

// openACL lets anybody do everything, under any name that the templates log in with.
func openACL() string {
	var b strings.Builder
	for _, user := range []string{"default", "ratelimit", "replication", "sentinel", "peer", "operator"} {
		fmt.Fprintf(&b, "user %s on nopass ~* &* +@all\n", user)
	}
	return b.String()
}

// dataRecipe is a data node outside of a Cluster.
func (s *Set) dataRecipe(i int) recipe {
	return recipe{
		main: redisconf.Redis, templates: []string{redisconf.Redis, redisconf.Users},
		source: dataSource(i), lines: s.dataLines,
	}
}

func dataName(i int) string     { return fmt.Sprintf("redis-%d", i) }
func sentinelName(i int) string { return fmt.Sprintf("sentinel-%d", i) }

// The addresses that nodes of a gated set connect from. Everything in 127.0.0.0/8 is this machine, on Linux.
func dataSource(i int) string     { return fmt.Sprintf("127.1.0.%d", i+1) }
func sentinelSource(i int) string { return fmt.Sprintf("127.2.0.%d", i+1) }

// dataLines are what data nodes have in common beyond the template.
func (s *Set) dataLines(spec nodeSpec) []string {
	lines := []string{
		"repl-diskless-sync-delay 0", // nobody waits for a second replica here
		fmt.Sprintf("min-replicas-to-write %d", s.cfg.MinReplicas),
	}
	return append(lines, s.cfg.RedisLines...)
}

func newClient(addr string, login Login, secure *tls.Config) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, Username: login.Username, Password: login.Password, TLSConfig: secure.Clone(),
		Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
		DialTimeout: clientTimeout, ReadTimeout: clientTimeout, WriteTimeout: clientTimeout,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}
