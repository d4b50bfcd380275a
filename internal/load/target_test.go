package load_test

import (
	"context"
	"errors"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/honestlimit/ratelimit/internal/load"
)

// listenAt starts the service on a real socket.
func listenAt(t *testing.T, network, address string) string {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(server, &service{answer: ok, started: time.Now()})
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Stop(); served.Wait() })
	return listener.Addr().String()
}

func small(target string) load.Config {
	return load.Config{
		Target: target, Requests: 50, Connections: 3, Streams: 2, Domain: "mesh",
		Descriptors: [][]load.Entry{{{Key: "tenant", Value: "acme"}}},
	}
}

func TestRun_SpeaksOverRealSockets(t *testing.T) {
	targets := map[string]string{
		"tcp":  listenAt(t, "tcp", "127.0.0.1:0"),
		"unix": "unix:" + listenAt(t, "unix", filepath.Join(t.TempDir(), "rls.sock")),
	}
	for name, target := range targets {
		t.Run(name, func(t *testing.T) {
			report := runLoad(t, small(target))
			if report.All.Admitted != 50 || report.ConnectionsOpened != 3 || report.Target != target {
				t.Errorf("%d admitted over %d connections to %s, want 50 over 3 to %s",
					report.All.Admitted, report.ConnectionsOpened, report.Target, target)
			}
		})
	}
}

func TestRun_SaysWhyItCannotConnect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nobody.sock")
	_, err := load.Run(t.Context(), small("unix:"+path))
	if !errors.Is(err, load.ErrUnreachable) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want ErrUnreachable and the address", err)
	}
}

func TestRun_CountsReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cfg := serve(t, ok)
		var mu sync.Mutex
		var open []net.Conn
		dial := cfg.Dial
		cfg.Dial = func(ctx context.Context, target string) (net.Conn, error) {
			conn, err := dial(ctx, target)
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			return conn, err
		}
		cfg.Connections, cfg.Rate, cfg.Duration = 3, 100, 3*time.Second
		cfg.Fault = &load.Fault{At: time.Second, For: time.Second, Begin: func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			for _, conn := range open[:2] {
				conn.Close()
			}
			return nil
		}}
		report := runLoad(t, cfg)
		f := report.Fault
		if f.ReconnectsDuring != 2 || f.ReconnectsAfter != 0 || report.ConnectionsOpened != 5 {
			t.Errorf("%d reconnects in the fault, %d after it, %d connections, want 2, 0, 5",
				f.ReconnectsDuring, f.ReconnectsAfter, report.ConnectionsOpened)
		}
	})
}

func TestRun_MeasuresProcesses(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Log("this system has no /proc: the processes asked for are refused")
		cfg := small("memory")
		cfg.PIDs = []int{os.Getpid()}
		if _, err := load.Run(t.Context(), cfg); err == nil {
			t.Error("no error")
		}
		return
	}
	sleeper := exec.Command("sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	cfg := small(listenAt(t, "tcp", "127.0.0.1:0"))
	cfg.Requests, cfg.Duration, cfg.Rate, cfg.PIDs = 0, 500*time.Millisecond, 100, []int{os.Getpid(), sleeper.Process.Pid}
	cfg.Fault = &load.Fault{At: 100 * time.Millisecond, Begin: func(context.Context) error {
		if err := sleeper.Process.Kill(); err != nil {
			return err
		}
		return ignoreExit(sleeper.Wait())
	}}
	report := runLoad(t, cfg)
	if len(report.CPU) != 2 || report.CPU[0].PID != os.Getpid() || report.CPU[0].Gone || !report.CPU[1].Gone {
		t.Fatalf("processes %+v, want this one alive and the other gone", report.CPU)
	}
	// Both are this process, read one after the other: the kernel's ticks of 10 ms may fall between, on a busy machine
	// some of them.
	g, own := report.Generator, report.CPU[0]
	if g == nil || g.PID != own.PID || g.Name != own.Name || g.Gone || math.Abs(g.Seconds-own.Seconds) > 0.2 {
		t.Errorf("generator %+v, want the same as %+v", g, own)
	}
	per := report.CPU[0].Seconds / float64(report.All.Requests) * 1e6
	if got := report.CPU[0].MicrosecondsPerRequest; got < per*0.999 || got > per*1.001 {
		t.Errorf("%v us a request, want %v", got, per)
	}
}

func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}
