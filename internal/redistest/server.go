package redistest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/honestlimit/ratelimit/internal/process"
)

// Config says what kind of server a test needs. The zero value is a plain one on a free loopback port.
type Config struct {
	// Args are further arguments of redis-server, such as "--maxmemory", "2mb".
	Args []string
	// Unix makes it listen on a socket file only.
	Unix bool
	// TLS makes it speak TLS only, and demand a client certificate of the same CA.
	TLS *Certificates
	// Password is what the default user must authenticate with; empty for none.
	Password string
}

// Server is a redis-server process that keeps its address when it is killed and restarted. It persists nothing.
type Server struct {
	t       testing.TB
	cfg     Config
	dir     string
	network string
	addr    string

	mu      sync.Mutex
	process *process.Process
	said    *said
}

// Start runs a server and waits until it accepts connections. The test's Cleanup ends it.
func Start(t testing.TB, cfg Config) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatal("redis-server is not installed: `apt-get install redis-server` (or `brew install redis`) brings it")
	}
	s := &Server{t: t, cfg: cfg, dir: t.TempDir()}
	t.Cleanup(s.Kill)
	for range 5 { // somebody else may take the free port before the server does
		s.network, s.addr = s.listenAt()
		if s.run() {
			return s
		}
	}
	t.Fatalf("redis-server does not start:\n%s", s.Logs())
	return nil
}

// Network is "tcp" or "unix".
func (s *Server) Network() string { return s.network }

// Addr is host:port, or the path of the socket.
func (s *Server) Addr() string { return s.addr }

// URL is the address as the service takes it, without credentials.
func (s *Server) URL() string {
	switch {
	case s.cfg.Unix:
		return "unix://" + s.addr
	case s.cfg.TLS != nil:
		return "rediss://" + s.addr
	default:
		return "redis://" + s.addr
	}
}

// Client returns a client for preparing and asserting things, logged in as the default user. Cleanup closes it.
func (s *Server) Client() *redis.Client {
	c := redis.NewClient(&redis.Options{
		Network: s.network, Addr: s.addr, Password: s.cfg.Password, TLSConfig: s.clientTLS(),
		DisableIdentity: true, MaxRetries: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// SetUser makes the account anew, with a password and nothing but what the ACL rules allow, such as "~rl:*", "+get".
func (s *Server) SetUser(name, password string, rules ...string) {
	s.t.Helper()
	s.ACL(name, append([]string{"reset", "on", ">" + password}, rules...)...)
}

// ACL changes the account by ACL rules, and leaves what they do not name.
func (s *Server) ACL(name string, rules ...string) {
	s.t.Helper()
	args := []any{"acl", "setuser", name}
	for _, r := range rules {
		args = append(args, r)
	}
	if err := s.Client().Do(s.t.Context(), args...).Err(); err != nil {
		s.t.Fatalf("acl setuser %s %v: %v", name, rules, err)
	}
}

// Kill ends the process at once, as a crash would, and waits until it is gone. Killing a dead server does nothing.
func (s *Server) Kill() {
	s.t.Helper()
	if p := s.current(); p != nil {
		s.must(p.Kill())
	}
}

// Restart kills the server and starts it anew, empty, at the same address.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if !s.run() {
		s.t.Fatalf("redis-server does not restart:\n%s", s.Logs())
	}
}

// Freeze stops the process in its tracks: its kernel still accepts connections, and nobody answers them.
func (s *Server) Freeze() {
	s.t.Helper()
	s.must(s.current().Freeze())
}

// Thaw lets a frozen process go on.
func (s *Server) Thaw() {
	s.t.Helper()
	s.must(s.current().Thaw())
}

// CPU is the processor time that the server has used.
func (s *Server) CPU() (total time.Duration) {
	s.t.Helper()
	info := s.Client().InfoMap(context.Background(), "cpu").Val()["CPU"]
	for _, field := range []string{"used_cpu_sys", "used_cpu_user"} {
		seconds, err := strconv.ParseFloat(info[field], 64)
		if err != nil {
			s.t.Fatal(err)
		}
		total += time.Duration(seconds * float64(time.Second))
	}
	return total
}

// Logs is what the newest process has printed.
func (s *Server) Logs() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said == nil {
		return ""
	}
	return s.said.String()
}

func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) current() *process.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

func (s *Server) listenAt() (network, addr string) {
	if s.cfg.Unix {
		return "unix", filepath.Join(s.dir, "redis.sock")
	}
	addrs, err := process.FreeAddresses(1)
	if err != nil {
		s.t.Fatal(err)
	}
	return "tcp", addrs[0]
}

// run starts a process; false if it ended before it was ready.
func (s *Server) run() bool {
	s.t.Helper()
	said := new(said)
	p, err := process.Start(process.Config{Path: "redis-server", Args: s.args(), Stdout: said, Stderr: said})
	s.must(err)
	s.mu.Lock()
	s.process, s.said = p, said
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := p.AwaitReady(ctx, said.ready); err != nil && !errors.Is(err, process.ErrExited) {
		s.t.Fatal(err)
	}
	return p.Exited() == nil
}

func (s *Server) args() []string {
	args := []string{
		"--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no", "--daemonize", "no",
		"--loglevel", "notice", "--logfile", "", "--repl-diskless-sync-delay", "0",
	}
	if s.cfg.Password != "" {
		args = append(args, "--requirepass", s.cfg.Password)
	}
	_, port, _ := net.SplitHostPort(s.addr)
	switch {
	case s.cfg.Unix:
		args = append(args, "--port", "0", "--unixsocket", s.addr)
	case s.cfg.TLS != nil:
		args = append(args, "--port", "0", "--tls-port", port, "--tls-ca-cert-file", s.cfg.TLS.CAFile,
			"--tls-cert-file", s.cfg.TLS.ServerCertFile, "--tls-key-file", s.cfg.TLS.ServerKeyFile)
	default:
		args = append(args, "--port", port)
	}
	return append(args, s.cfg.Args...)
}

func (s *Server) clientTLS() *tls.Config {
	if s.cfg.TLS == nil {
		return nil
	}
	return s.cfg.TLS.ClientConfig(s.t)
}

// said is what one run of redis-server has printed.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// ready checks that the server says that it accepts connections.
func (s *said) ready(context.Context) error {
	if !strings.Contains(strings.ToLower(s.String()), "ready to accept connections") {
		return errors.New("it does not say that it is ready")
	}
	return nil
}
