package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/process"
)

// grace is longer than the 10 s for which a server that is told to end waits for replicas that lag.
const grace = 15 * time.Second

// Node is one Redis server or Sentinel of a set. It keeps its addresses and its files when it is restarted.
type Node struct {
	name   string
	spec   nodeSpec
	client *redis.Client
	gates  []*gate
	log    *os.File

	mu      sync.Mutex
	process *process.Process
	ended   bool // by close: nothing starts again
}

// nodeSpec is what a node is started from.
type nodeSpec struct {
	program        string
	args           []string
	config, log    string // paths
	addr, direct   string // as announced, and as listened at
	bus, directBus string // the same of a Cluster's bus; empty elsewhere
}

// Name is redis-0, redis-1 and so on for data nodes, whatever their role, and sentinel-0 and so on for Sentinels.
func (n *Node) Name() string { return n.name }

// Addr is the host:port that the node announces and that clients connect to: its gate's in a gated set.
func (n *Node) Addr() string { return n.spec.addr }

// Direct is the host:port of the process itself, which no partition cuts off: for those who only observe.
func (n *Node) Direct() string { return n.spec.direct }

// ConfigFile is the path of its configuration, in a directory of its own. The node rewrites it at run time.
func (n *Node) ConfigFile() string { return n.spec.config }

// LogFile is the path of what all its processes so far have logged.
func (n *Node) LogFile() string { return n.spec.log }

// Log is the content of LogFile.
func (n *Node) Log() (string, error) {
	b, err := os.ReadFile(n.spec.log)
	if err != nil {
		return "", fmt.Errorf("topology: %w", err)
	}
	return string(b), nil
}

// Tail is the last of what the newest process has logged.
func (n *Node) Tail() string { return n.current().Tail() }

// Client is the operator's, at Direct, whether the node runs or not. Closing the set closes it; nobody else may.
func (n *Node) Client() *redis.Client { return n.client }

// PID is the process id of the newest process, ended or not.
func (n *Node) PID() int { return n.current().PID() }

// Running is whether the process lives, frozen or not.
func (n *Node) Running() bool { return n.current().Exited() == nil }

// Kill ends the process at once, as a crash would, and waits until it is gone. A dead node is no error.
func (n *Node) Kill() error { return n.current().Kill() }

// Stop asks the process to end in order, as a service manager would, and waits until it is gone.
func (n *Node) Stop() error { return n.current().Stop() }

// Freeze stops the process where it is: its kernel still accepts connections, and nobody answers them.
func (n *Node) Freeze() error { return n.current().Freeze() }

// Thaw lets a frozen process go on.
func (n *Node) Thaw() error { return n.current().Thaw() }

// Restart ends the process if it still runs, starts it anew at the same addresses with the configuration as it stands,
// and waits until it answers. It persists nothing but that configuration: a master comes back empty.
func (n *Node) Restart(ctx context.Context) error {
	if err := n.Kill(); err != nil {
		return err
	}
	p, err := n.launch()
	if err != nil {
		return err
	}
	return n.ready(ctx, p)
}

// Accepts are the connections that the node's gate has accepted, the oldest first; none without Config.Gated.
func (n *Node) Accepts() []Accept {
	if len(n.gates) == 0 {
		return nil
	}
	return n.gates[0].history()
}

func (n *Node) current() *process.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

func (n *Node) launch() (*process.Process, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return nil, errors.New("topology: the set is closed")
	}
	p, err := process.Start(process.Config{
		Name: n.name, Path: n.spec.program, Args: n.spec.args, Stdout: n.log, Stderr: n.log, Grace: grace,
	})
	if err != nil {
		return nil, err
	}
	n.process = p
	return p, nil
}

// ready waits until the process answers.
func (n *Node) ready(ctx context.Context, p *process.Process) error {
	listens := process.Listens(n.spec.direct)
	return p.AwaitReady(ctx, func(ctx context.Context) error {
		if err := listens(ctx); err != nil { // the client would print what it cannot dial
			return err
		}
		return n.client.Ping(ctx).Err()
	})
}

// close ends the process for good.
func (n *Node) close() error {
	n.mu.Lock()
	n.ended = true
	p := n.process
	n.mu.Unlock()
	return errors.Join(p.Kill(), n.client.Close(), n.log.Close())
}

// write puts the configuration and files beside it in place.
func (s nodeSpec) write(files map[string]string) error {
	dir := filepath.Dir(s.config)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("topology: %w", err)
		}
	}
	return nil
}
