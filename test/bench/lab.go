package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/honestlimit/ratelimit/internal/load"
	"github.com/honestlimit/ratelimit/internal/process"
)

// startTimeout bounds how long one program may take to get ready.
const startTimeout = 30 * time.Second

// lab starts what is measured.
type lab struct {
	opts options
	dir  string
	// prefix comes before the service's arguments: the test flags of a test binary.
	prefix []string
	// progress is where people are told what goes on.
	progress *os.File
}

// subject is something that answers ShouldRateLimit, with the processes that its cost is charged to.
type subject struct {
	kind
	addr, admin, redisAddr string
	server, redis          *process.Process // redis is nil where there is none
}

// kind is a way to run a subject.
type kind struct {
	name string
	// start is floorServer, service or peerService.
	start func(*lab, context.Context, *subject) error
	// redis says that it keeps its limits there.
	redis bool
	// flags, env and policies are the service's; policies defaults to the usual ones.
	flags, env []string
	policies   string
}

// Names of subjects.
const (
	floorName    = "constant answer (the floor)"
	embeddedName = "embedded store"
	redisName    = "through Redis"
)

var (
	floorKind    = kind{name: floorName, start: (*lab).startFloor}
	embeddedKind = kind{name: embeddedName, start: (*lab).startService}
	redisKind    = kind{name: redisName, start: (*lab).startService, redis: true}
)

func (l *lab) sayf(format string, args ...any) { fmt.Fprintf(l.progress, format+"\n", args...) }

// startAll starts one subject of each kind, or none.
func (l *lab) startAll(ctx context.Context, kinds ...kind) (subjects, error) {
	var all subjects
	for _, k := range kinds {
		s, err := l.start(ctx, k)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", k.name, err), all.stop())
		}
		all = append(all, s)
	}
	return all, nil
}

// start starts what k needs and returns once it answers a request.
func (l *lab) start(ctx context.Context, k kind) (*subject, error) {
	addrs, err := process.FreeAddresses(3)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s := &subject{kind: k, addr: addrs[0], admin: addrs[1]}
	if k.redis {
		s.redisAddr = addrs[2]
		if s.redis, err = startRedis(ctx, s.redisAddr); err != nil {
			return nil, err
		}
	}
	if err := k.start(l, ctx, s); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	if err := l.answers(ctx, s); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// answers waits until s admits a request, which takes its store.
func (l *lab) answers(ctx context.Context, s *subject) error {
	return process.Await(ctx, s.name+" to decide", func(ctx context.Context) error {
		report, err := load.Run(ctx, load.Config{
			Target: s.addr, Connections: 1, Streams: 1, Requests: 1, Timeout: time.Second,
			Domain: domain, Descriptors: usual("warm-up"),
		})
		if err != nil {
			return err
		}
		if a := report.All; a.Admitted != 1 || a.Degraded != 0 {
			return fmt.Errorf("it answers %+v", a.Answers)
		}
		return nil
	})
}

func startRedis(ctx context.Context, addr string, args ...string) (*process.Process, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	args = append([]string{
		"--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
	}, args...)
	p, err := process.Start(process.Config{Name: "redis-server", Path: "redis-server", Args: args})
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("%w (scripts/needs.sh redis-server says how to get it)", err)
	}
	if err != nil {
		return nil, err
	}
	return p, p.AwaitReady(ctx, process.Listens(addr))
}

func (l *lab) startFloor(ctx context.Context, s *subject) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s.server, err = process.Start(process.Config{
		Name: "floor", Path: self, Args: []string{"floor", "--grpc", s.addr, "--admin", s.admin},
	})
	if err != nil {
		return err
	}
	return s.server.AwaitReady(ctx, process.Listens(s.addr))
}

func (l *lab) startService(ctx context.Context, s *subject) (err error) {
	path := filepath.Join(l.dir, "usual.yaml")
	text := usualPolicies
	if s.policies != "" {
		path, text = filepath.Join(l.dir, s.addr[len("127.0.0.1:"):]+".yaml"), s.policies
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	args := []string{
		"serve", "--policies", path, "--grpc", s.addr, "--admin", s.admin, "--log-level", "error",
		"--drain-delay", "0s",
	}
	if s.kind.redis {
		args = append(args, "--redis", "redis://"+s.redisAddr)
	}
	if s.server, err = l.startProgram(s.env, append(args, s.flags...)); err != nil {
		return err
	}
	return s.server.AwaitReady(ctx, process.HTTPOK("http://"+s.admin+"/readyz"))
}

// pids are the living processes whose CPU is reported, the service first.
func (s *subject) pids() []int {
	var all []int
	for _, p := range [...]*process.Process{s.server, s.redis} {
		if p != nil && p.Exited() == nil {
			all = append(all, p.PID())
		}
	}
	return all
}

// stop ends all of it. A service that holds calls that its dead store never answers does not end on SIGTERM, so the
// end is not polite.
func (s *subject) stop() error {
	var errs []error
	for _, p := range [...]*process.Process{s.server, s.redis} {
		if p != nil {
			errs = append(errs, p.Kill())
		}
	}
	return errors.Join(errs...)
}

type subjects []*subject

func (all subjects) stop() error {
	var errs []error
	for _, s := range all {
		errs = append(errs, s.stop())
	}
	return errors.Join(errs...)
}

// rotated begins with another subject each round, so that none always comes first, or after the same one.
func (all subjects) rotated(round int) subjects {
	n := round % len(all)
	return append(append(subjects{}, all[n:]...), all[:n]...)
}
