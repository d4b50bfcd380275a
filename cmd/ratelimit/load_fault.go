package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/honestlimit/ratelimit/internal/load"
)

// loadFault are the flags that break something in the middle of a load.
type loadFault struct {
	Fault    string        `env:"-" help:"Shell command that breaks something. Without --fault-for the fault lasts as long as it runs." placeholder:"COMMAND"`
	FaultEnd string        `env:"-" help:"Shell command that mends it. It is also run if the load is cut short." placeholder:"COMMAND"`
	FaultAt  time.Duration `env:"-" default:"5s" help:"When to break it, after the warm-up."`
	FaultFor time.Duration `env:"-" help:"How long it stays broken." placeholder:"TIME"`
	Freeze   []int         `env:"-" help:"Freeze these processes (SIGSTOP) for --fault-for." placeholder:"PID"`
	Kill     []int         `env:"-" help:"Kill these processes (SIGKILL)." placeholder:"PID"`
}

// fault is nil if nothing is to be broken.
func (f *loadFault) fault() (*load.Fault, error) {
	if f.Fault == "" && len(f.Freeze) == 0 && len(f.Kill) == 0 {
		return nil, f.unused()
	}
	var faults []error
	if len(f.Freeze) > 0 && f.FaultFor == 0 {
		faults = append(faults, errors.New("--freeze: needs --fault-for, to say when to thaw"))
	}
	faults = append(faults, mortal("--freeze", f.Freeze), mortal("--kill", f.Kill))
	return &load.Fault{At: f.FaultAt, For: f.FaultFor, Begin: f.begin, End: f.end}, errors.Join(faults...)
}

// unused complains about flags that mean nothing without a fault.
func (f *loadFault) unused() error {
	var faults []error
	if f.FaultEnd != "" {
		faults = append(faults, errors.New("--fault-end: there is no --fault, --freeze or --kill to mend"))
	}
	if f.FaultFor != 0 {
		faults = append(faults, errors.New("--fault-for: there is no --fault, --freeze or --kill that could last"))
	}
	return errors.Join(faults...)
}

// mortal refuses processes that are not there, and those that nobody wants to stop.
func mortal(flag string, pids []int) error {
	var faults []error
	for _, pid := range pids {
		if pid <= 1 || pid == os.Getpid() {
			faults = append(faults, fmt.Errorf("%s: process %d is not for stopping", flag, pid))
			continue
		}
		if err := syscall.Kill(pid, 0); err != nil {
			faults = append(faults, fmt.Errorf("%s: process %d: %w", flag, pid, err))
		}
	}
	return errors.Join(faults...)
}

func (f *loadFault) begin(ctx context.Context) error {
	return errors.Join(
		signalAll("--freeze", f.Freeze, syscall.SIGSTOP),
		signalAll("--kill", f.Kill, syscall.SIGKILL),
		shell(ctx, "--fault", f.Fault),
	)
}

func (f *loadFault) end(ctx context.Context) error {
	return errors.Join(
		signalAll("--freeze", f.Freeze, syscall.SIGCONT),
		shell(ctx, "--fault-end", f.FaultEnd),
	)
}

func signalAll(flag string, pids []int, s syscall.Signal) error {
	var faults []error
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil {
			faults = append(faults, fmt.Errorf("%s: process %d: %w", flag, pid, err))
		}
	}
	return errors.Join(faults...)
}

// shell runs a command in a process group of its own: what it starts must survive the Ctrl-C that ends the load, and
// what it waits for must not survive the end of ctx. Its output is a file and no pipe, which a daemon would keep open.
func shell(ctx context.Context, flag, command string) error {
	if command == "" {
		return nil
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}
