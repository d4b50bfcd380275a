package redistest

import (
	"context"
	"crypto/tls"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	children "github.com/honestlimit/ratelimit/internal/process"
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
	process *process
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
	if p := s.current(); p != nil {
		p.kill()
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
	s.signal(syscall.SIGSTOP)
	Eventually(s.t, "redis-server to freeze", func() bool {
		return children.Frozen(s.current().cmd.Process.Pid) == nil
	})
}

// Thaw lets a frozen process go on.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

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
	if p := s.current(); p != nil {
		return p.logs()
	}
	return ""
}

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.current().cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("redis-server: %v: %v", sig, err)
	}
}

func (s *Server) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

func (s *Server) listenAt() (network, addr string) {
	if s.cfg.Unix {
		return "unix", filepath.Join(s.dir, "redis.sock")
	}
	addrs, err := children.FreeAddresses(1)
	if err != nil {
		s.t.Fatal(err)
	}
	return "tcp", addrs[0]
}

// run starts a process; false if it ended before it was ready.
func (s *Server) run() bool {
	s.t.Helper()
	p, err := startProcess(exec.Command("redis-server", s.args()...))
	if err != nil {
		s.t.Fatalf("redis-server: %v", err)
	}
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
	timeout := time.NewTimer(Patience)
	defer timeout.Stop()
	select {
	case <-p.ready:
		return true
	case <-p.gone:
		return false
	case <-timeout.C:
		s.t.Fatalf("redis-server is not ready after %v:\n%s", Patience, p.logs())
		return false
	}
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

// process is one run of redis-server.
type process struct {
	cmd   *exec.Cmd
	ready chan struct{} // closed when it says that it accepts connections
	gone  chan struct{} // closed when it has ended

	mu      sync.Mutex
	said    strings.Builder
	isReady bool
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, ready: make(chan struct{}), gone: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p, p
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.gone)
		_ = cmd.Wait() // how it ended is in its log
	}()
	return p, nil
}

// Write takes what the process prints.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said.Write(b)
	if !p.isReady && strings.Contains(strings.ToLower(p.said.String()), "ready to accept connections") {
		p.isReady = true
		close(p.ready)
	}
	return len(b), nil
}

func (p *process) logs() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only if the process has ended by itself
	<-p.gone
}
