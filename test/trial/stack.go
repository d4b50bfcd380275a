package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/honestlimit/ratelimit/envoy"
	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/test/backend"
	"github.com/honestlimit/ratelimit/test/token"
)

// startTimeout bounds how long one program may take to get ready; each takes about a second.
const startTimeout = 30 * time.Second

// stackConfig says what to run. All fields but Redis are required.
type stackConfig struct {
	// Dir receives keys, the rendered configuration and logs.
	Dir string
	// Envoy and RateLimit are programs; Redis is one too, or empty for the service's embedded store.
	Envoy, RateLimit, Redis string
	// Policies is the file or directory that the service enforces.
	Policies string
	// Ports are where things listen, if nothing else does already.
	Ports ports
	// Decisions receives Envoy's access log.
	Decisions io.Writer
}

// ports are host:port addresses. The zero value asks for free ones.
type ports struct {
	Edge, EnvoyAdmin, GRPC, Admin, Redis, PDFTalk, Resumint string
}

// usualPorts are the ones that documentation names.
func usualPorts() ports {
	return ports{
		Edge: "127.0.0.1:10000", EnvoyAdmin: "127.0.0.1:9901", GRPC: "127.0.0.1:8081", Admin: "127.0.0.1:9090",
		Redis: "127.0.0.1:6390", PDFTalk: "127.0.0.1:7001", Resumint: "127.0.0.1:7002",
	}
}

// settle replaces every address that is taken, or not given, by a free one.
func (p ports) settle() (ports, error) {
	all := []*string{&p.Edge, &p.EnvoyAdmin, &p.GRPC, &p.Admin, &p.Redis, &p.PDFTalk, &p.Resumint}
	free, err := process.FreeAddresses(len(all))
	if err != nil {
		return ports{}, err
	}
	for i, addr := range all {
		if *addr == "" || !process.IsFree(*addr) {
			*addr = free[i]
		}
	}
	return p, nil
}

// stack is everything that runs. Start one with startStack; whoever started it must stop it.
type stack struct {
	cfg      stackConfig
	ports    ports
	issuer   *token.Issuer
	backends []*backendServer
	children []*process.Process
	logs     []*os.File
	died     chan *process.Process
	// store is the program whose trouble the trial is about: Redis, or the service where there is none.
	store *process.Process
}

// startStack starts all programs in the order in which they need each other and returns when Envoy answers. If one of
// them fails, the others are stopped again.
func startStack(ctx context.Context, cfg stackConfig) (*stack, error) {
	s := &stack{cfg: cfg, died: make(chan *process.Process, 3)}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *stack) start(ctx context.Context) error {
	var err error
	if err = os.MkdirAll(s.cfg.Dir, 0o755); err != nil {
		return err
	}
	if s.issuer, err = token.Open(s.cfg.Dir); err != nil {
		return err
	}
	if s.ports, err = s.cfg.Ports.settle(); err != nil {
		return err
	}
	steps := []func(context.Context) error{s.startBackends, s.startRedis, s.startRateLimit, s.startEnvoy}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *stack) startBackends(context.Context) error {
	for name, addr := range map[string]string{
		backend.PDFTalk: s.ports.PDFTalk, backend.Resumint: s.ports.Resumint,
	} {
		b, err := serveBackend(name, addr)
		if err != nil {
			return err
		}
		s.backends = append(s.backends, b)
	}
	return nil
}

func (s *stack) startRedis(ctx context.Context) error {
	if s.cfg.Redis == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(s.ports.Redis)
	if err != nil {
		return err
	}
	p, err := s.launch(process.Config{
		Name: "redis", Path: s.cfg.Redis,
		Args: []string{
			"--bind", host, "--port", port, "--dir", s.cfg.Dir, "--save", "", "--appendonly", "no",
			// Every key has a lifetime, so under pressure the bucket that would be full soonest goes first.
			"--maxmemory", "64mb", "--maxmemory-policy", "volatile-ttl",
		},
	}, nil)
	if err != nil {
		return err
	}
	s.store = p
	return s.await(ctx, p, process.Listens(s.ports.Redis))
}

func (s *stack) startRateLimit(ctx context.Context) error {
	args := []string{
		"serve", "--policies", s.cfg.Policies, "--grpc", s.ports.GRPC, "--admin", s.ports.Admin,
		"--log-format", "console",
		// Nobody has to be told first that this replica is going.
		"--drain-delay", "0s",
	}
	if s.cfg.Redis != "" {
		args = append(args, "--redis", "redis://"+s.ports.Redis)
	}
	p, err := s.launch(process.Config{Name: "ratelimit", Path: s.cfg.RateLimit, Args: args}, nil)
	if err != nil {
		return err
	}
	if s.store == nil {
		s.store = p
	}
	return s.await(ctx, p, process.HTTPOK("http://"+s.ports.Admin+"/readyz"))
}

func (s *stack) startEnvoy(ctx context.Context) error {
	text, err := envoy.Render(envoy.Config{
		Listen: s.ports.Edge, Admin: s.ports.EnvoyAdmin, RateLimit: s.ports.GRPC,
		PDFTalk: s.ports.PDFTalk, Resumint: s.ports.Resumint, KeySet: filepath.Join(s.cfg.Dir, token.KeySetFile),
	})
	if err != nil {
		return err
	}
	config := filepath.Join(s.cfg.Dir, "envoy.yaml")
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return err
	}
	p, err := s.launch(process.Config{
		Name: "envoy", Path: s.cfg.Envoy,
		Args: []string{
			// Hot restart would let two trials on one machine take each other for the same Envoy.
			"--disable-hot-restart",
			// A person watches: the default shows what happened up to ten seconds ago.
			"--file-flush-interval-msec", "100",
			"--concurrency", "2", "--log-level", "warning", "--config-path", config,
		},
	}, s.cfg.Decisions)
	if err != nil {
		return err
	}
	return s.await(ctx, p, process.HTTPOK("http://"+s.ports.EnvoyAdmin+"/ready"))
}

// launch starts a child whose output goes to a file of its name, and its standard output to stdout where that is set.
func (s *stack) launch(cfg process.Config, stdout io.Writer) (*process.Process, error) {
	file, err := os.Create(s.logFile(cfg.Name))
	if err != nil {
		return nil, err
	}
	s.logs = append(s.logs, file)
	cfg.Stderr, cfg.Stdout = file, file
	if stdout != nil {
		cfg.Stdout = stdout
	}
	p, err := process.Start(cfg)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w (make run builds or fetches what is missing)", err)
	}
	if err != nil {
		return nil, err
	}
	s.children = append(s.children, p)
	go func() {
		<-p.Done()
		s.died <- p
	}()
	return p, nil
}

func (s *stack) logFile(name string) string { return filepath.Join(s.cfg.Dir, name+".log") }

func (s *stack) await(ctx context.Context, p *process.Process, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return p.AwaitReady(ctx, ready)
}

// wait returns nil when ctx ends, and the reason if a program ends before.
func (s *stack) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case p := <-s.died:
		return p.Exited()
	}
}

// stop ends everything, callers before those whom they call.
func (s *stack) stop() error {
	var errs []error
	for _, p := range slices.Backward(s.children) {
		errs = append(errs, p.Stop())
	}
	for _, b := range s.backends {
		errs = append(errs, b.stop())
	}
	for _, f := range s.logs {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
