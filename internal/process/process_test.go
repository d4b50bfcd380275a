package process_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/process"
)

// wait is how long these tests wait for what takes milliseconds.
const wait = 20 * time.Second

func TestProcess_StopEndsIt(t *testing.T) {
	p := start(t, process.Config{Path: "sh", Args: []string{"-c", "echo up; exec sleep 60"}})
	awaitTail(t, p, "up")
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if alive(p) {
		t.Error("the child lives on after Stop")
	}
}

func TestStart_DropsVariables(t *testing.T) {
	t.Setenv("DRILL_SEEN", "no")
	t.Setenv("OTHER", "yes")
	p := start(t, process.Config{
		Path: "sh", Args: []string{"-c", `echo "[$DRILL_SEEN$DRILL_ADDED$OTHER]"; exec sleep 60`},
		Env: []string{"DRILL_ADDED=added "}, Drop: "DRILL_",
	})
	awaitTail(t, p, "[added yes]")
}

func TestProcess_StopKillsTheDeaf(t *testing.T) {
	p := start(t, process.Config{
		Path: "sh", Args: []string{"-c", "trap '' TERM; echo up; while :; do sleep 1; done"},
		Grace: 100 * time.Millisecond,
	})
	awaitTail(t, p, "up")
	if err := p.Stop(); err == nil {
		t.Error("Stop says nothing of a child that would not go")
	}
	if alive(p) {
		t.Error("the child lives on after Stop")
	}
}

func TestProcess_StopEndsTheFrozen(t *testing.T) {
	p := start(t, process.Config{Path: "sleep", Args: []string{"60"}})
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if alive(p) {
		t.Error("the child lives on after Stop")
	}
}

func TestProcess_AwaitReadyTellsWhyItDied(t *testing.T) {
	p := start(t, process.Config{Name: "a failure", Path: "sh", Args: []string{"-c", "echo no such key >&2; exit 3"}})
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	never := func(context.Context) error { return errors.New("not ready") }
	err := p.AwaitReady(ctx, never)
	if !errors.Is(err, process.ErrExited) {
		t.Fatalf("AwaitReady = %v, want ErrExited", err)
	}
	for _, want := range []string{"a failure", "exit status 3", "no such key"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
	if ctx.Err() != nil {
		t.Error("AwaitReady waited to the end for a dead child")
	}
}

func TestFreeAddresses_Differ(t *testing.T) {
	addrs, err := process.FreeAddresses(3)
	if err != nil {
		t.Fatal(err)
	}
	if len(addrs) != 3 || addrs[0] == addrs[1] || addrs[1] == addrs[2] || addrs[0] == addrs[2] {
		t.Errorf("addresses = %v, want 3 different ones", addrs)
	}
}

func TestStart_NamesWhatCannotBeStarted(t *testing.T) {
	_, err := process.Start(process.Config{Name: "the store", Path: "/nonexistent/redis"})
	if err == nil || !strings.Contains(err.Error(), "the store") {
		t.Errorf("Start = %v, want an error that names the child", err)
	}
}

func start(t *testing.T, cfg process.Config) *process.Process {
	t.Helper()
	p, err := process.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func awaitTail(t *testing.T, p *process.Process, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	err := p.AwaitReady(ctx, func(context.Context) error {
		if !strings.Contains(p.Tail(), want) {
			return errors.New("nothing said yet")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func alive(p *process.Process) bool {
	other, err := os.FindProcess(p.PID())
	return err == nil && other.Signal(syscall.Signal(0)) == nil
}
