// Package process runs the other programs that trials and tests need, Envoy and Redis among them: it starts a child,
// waits until a condition shows that it is ready, freezes, thaws and stops it. It ends only children that it started
// itself, by their process id, and knows nothing of what they do.
//
// A Process may be used by several goroutines at once.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// tailSize is how much of a child's last output is kept to explain its death, in bytes.
const tailSize = 8 << 10

// ErrExited means that a child ended by itself although it was meant to run.
var ErrExited = errors.New("process ended")

// Config describes a child. Path is required.
type Config struct {
	// Name is what errors call the child; the default is Path.
	Name string
	// Path is the program, with a slash in it or found on PATH.
	Path string
	// Args are its arguments without the program's name.
	Args []string
	// Env are variables, name=value, added to this process' own, of which those whose names begin with Drop are left
	// out; by default none are.
	Env  []string
	Drop string
	// Stdout and Stderr receive what the child prints; nil drops it. The last of both is kept for Tail regardless.
	Stdout, Stderr io.Writer
	// Grace is how long Stop waits after SIGTERM before it kills; the default is 10 s.
	Grace time.Duration
}

// Process is a running child. Make one with Start; whoever started it must Stop it.
type Process struct {
	name  string
	grace time.Duration
	cmd   *exec.Cmd
	tail  *tail
	done  chan struct{}
	err   error // What Wait said; readable once done is closed.
}

// Start runs the child in a process group of its own, so that Ctrl-C on the terminal reaches only this process, which
// can then stop its children in order.
func Start(cfg Config) (*Process, error) {
	if cfg.Name == "" {
		cfg.Name = cfg.Path
	}
	if cfg.Grace == 0 {
		cfg.Grace = 10 * time.Second
	}
	last := new(tail)
	cmd := exec.Command(cfg.Path, cfg.Args...)
	cmd.Env = append(inherited(cfg.Drop), cfg.Env...)
	cmd.Stdout = both(cfg.Stdout, last)
	cmd.Stderr = both(cfg.Stderr, last)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Grandchildren may keep the output open; the wait for it must end all the same.
	cmd.WaitDelay = cfg.Grace
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("process: start %s: %w", cfg.Name, err)
	}
	p := &Process{name: cfg.Name, grace: cfg.Grace, cmd: cmd, tail: last, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// inherited is this process' environment without the variables whose names begin with drop.
func inherited(drop string) []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return drop != "" && strings.HasPrefix(v, drop) })
}

// Name is the name that Config gave the child.
func (p *Process) Name() string { return p.name }

// PID is the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended, by itself or not.
func (p *Process) Done() <-chan struct{} { return p.done }

// Tail is the last of what the child printed.
func (p *Process) Tail() string { return p.tail.String() }

// Exited is nil while the child runs; afterwards it wraps ErrExited and tells how it ended and what it said last.
func (p *Process) Exited() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s: %w (%v), its last words:\n%s", p.name, ErrExited, p.cmd.ProcessState, p.Tail())
	default:
		return nil
	}
}

// Signal sends s; a child that has ended is no error.
func (p *Process) Signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("process: signal %s: %w", p.name, err)
	}
	return nil
}

// Freeze stops the child where it is, as a machine in trouble would: its sockets stay open and say nothing. It returns
// when every thread of the child has stopped, or the child has ended: a busy machine delivers the signal late.
func (p *Process) Freeze() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.grace)
	defer cancel()
	return Await(ctx, p.name+" to freeze", func(context.Context) error { return Frozen(p.PID()) })
}

// Frozen checks that no thread of the process runs. A process that has ended runs no thread.
func Frozen(pid int) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return fmt.Errorf("process: %w", err)
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return fmt.Errorf("process: %w", err)
		}
		_, rest, _ := strings.Cut(string(stat), ") ") // the name before it may hold anything but this
		if state, _, _ := strings.Cut(rest, " "); state != "T" && state != "Z" {
			return fmt.Errorf("process: %s is in state %s", thread, state)
		}
	}
	return nil
}

// Thaw lets a frozen child go on.
func (p *Process) Thaw() error { return p.Signal(syscall.SIGCONT) }

// Kill ends the child at once and waits until it is gone.
func (p *Process) Kill() error {
	if err := p.Signal(os.Kill); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Stop asks the child to end, frozen or not, kills it after the grace, and waits until it is gone. Its exit status is
// no error: many programs end a SIGTERM with one.
func (p *Process) Stop() error {
	if err := errors.Join(p.Signal(syscall.SIGTERM), p.Thaw()); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(p.grace):
		return errors.Join(fmt.Errorf("process: %s outlived its %v of grace", p.name, p.grace), p.Kill())
	}
}

// both writes to w, where there is one, and to last.
func both(w io.Writer, last *tail) io.Writer {
	if w == nil {
		return last
	}
	return io.MultiWriter(w, last)
}

// tail keeps the last tailSize bytes written to it. Two goroutines write: stdout's and stderr's.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}
