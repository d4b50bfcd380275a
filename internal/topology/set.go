package topology

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/honestlimit/ratelimit/internal/process"
)

// Set is what all topologies have in common: nodes, and the network between them.
type Set struct {
	cfg     Config
	tls     *tls.Config // of clients; nil for plain text
	network *Network
	closing sync.Once
	closed  error

	mu    sync.Mutex
	nodes []*Node
}

// newSet starts nothing. What the default of Config.Replicas is depends on the kind of the set.
func newSet(cfg Config, replicas int) (*Set, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults(replicas)
	clientTLS, err := cfg.TLS.client()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	return &Set{cfg: cfg, tls: clientTLS, network: newNetwork()}, nil
}

// Nodes are all nodes, data nodes and Sentinels, in the order in which they were started.
func (s *Set) Nodes() []*Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.nodes)
}

// Network cuts and slows down the connections between the nodes. Only a set with Config.Gated obeys it.
func (s *Set) Network() *Network { return s.network }

// Node is the node of that name, data node or Sentinel; nil if there is none.
func (s *Set) Node(name string) *Node {
	nodes := s.Nodes()
	i := slices.IndexFunc(nodes, func(n *Node) bool { return n.name == name })
	if i < 0 {
		return nil
	}
	return nodes[i]
}

// ServiceLogin is the account of the service on data nodes; empty without Config.Secrets.
func (s *Set) ServiceLogin() Login { return s.login("ratelimit", (*Secrets).service) }

// OperatorLogin is the account that may do everything, everywhere; empty without Config.Secrets.
func (s *Set) OperatorLogin() Login { return s.login("operator", (*Secrets).operator) }

func (s *Set) login(user string, password func(*Secrets) string) Login {
	if s.cfg.Secrets == nil {
		return Login{}
	}
	return Login{Username: user, Password: password(s.cfg.Secrets)}
}

// ClientTLS is what clients of the nodes need; nil without Config.TLS.
func (s *Set) ClientTLS() *tls.Config { return s.tls.Clone() }

// Close ends every process and every gate, and returns when they are gone. The files stay. A second call does nothing
// and returns the same.
func (s *Set) Close() error {
	s.closing.Do(func() {
		nodes := s.Nodes()
		errs := make([]error, len(nodes))
		var ends sync.WaitGroup
		for i, n := range nodes {
			ends.Go(func() { errs[i] = n.close() })
		}
		ends.Wait()
		s.closed = errors.Join(append(errs, s.network.close())...)
	})
	return s.closed
}

// open starts the nodes and waits for healthy, unless the configuration wants it unchecked. It closes the set if that
// does not work out.
func (s *Set) open(ctx context.Context, what string, build, healthy func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StartTimeout)
	defer cancel()
	err := build(ctx)
	if err == nil && !s.cfg.Unchecked {
		err = process.Await(ctx, what, healthy)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("topology: start %s: %w", what, err), s.Close())
	}
	return nil
}

// named are the nodes whose name starts like that, in the order of their numbers.
func (s *Set) named(prefix string) []*Node {
	return slices.DeleteFunc(s.Nodes(), func(n *Node) bool { return !strings.HasPrefix(n.name, prefix) })
}

// path is that of a file in the set's directory.
func (s *Set) path(name ...string) string {
	return filepath.Join(append([]string{s.cfg.Dir}, name...)...)
}

// at is the node that announces the address; nil if there is none.
func (s *Set) at(addr string) *Node {
	for _, n := range s.Nodes() {
		if n.Addr() == addr {
			return n
		}
	}
	return nil
}
