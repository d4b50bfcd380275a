// Command bench measures the service as a client sees it: requests per second and latency percentiles with the
// embedded store, and with Redis healthy, frozen and dead, beside a gRPC server that answers a constant. Everything
// runs on this machine, load generator included, so that only the ratios inside one run mean anything; the rounds are
// interleaved for the same reason. It prints a Markdown table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"time"

	"github.com/honestlimit/ratelimit/test/process"
)

// options is the command line.
type options struct {
	binary      string
	duration    time.Duration
	rounds      int
	connections int
	streams     int
	floor       string
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "", "the ratelimit binary to measure")
	flag.DurationVar(&o.duration, "duration", 4*time.Second, "load in each scenario and round")
	flag.IntVar(&o.rounds, "rounds", 3, "interleaved rounds; the table shows medians")
	flag.IntVar(&o.connections, "connections", 4, "connections of the load generator")
	flag.IntVar(&o.streams, "streams", 16, "concurrent requests on each connection")
	flag.StringVar(&o.floor, "serve-floor", "", "serve the constant answer at this address and do nothing else")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.floor != "" {
		return serveFloor(ctx, o.floor)
	}
	if o.binary == "" {
		return errors.New("--binary is missing: build it with `make build`")
	}
	dir, err := os.MkdirTemp("", "ratelimit-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	policies, err := writePolicies(dir)
	if err != nil {
		return err
	}
	results := make([][]sample, len(scenarios))
	for round := range o.rounds {
		for i, s := range scenarios {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, o.rounds, s.name)
			got, err := measure(ctx, o, policies, s)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			results[i] = append(results[i], got)
		}
	}
	fmt.Printf("%d cores (%s), load generator and Redis on the same machine; %d connections x %d requests at a time, "+
		"medians of %d rounds of %v.\n\n", runtime.NumCPU(), runtime.GOARCH, o.connections, o.streams, o.rounds, o.duration)
	report(os.Stdout, results)
	return nil
}

// measure starts what s needs, breaks what s breaks, and loads it.
func measure(ctx context.Context, o options, policies string, s scenario) (sample, error) {
	addrs, err := process.FreeAddresses(3)
	if err != nil {
		return sample{}, err
	}
	redisAddr, grpcAddr, adminAddr := addrs[0], addrs[1], addrs[2]
	var redis *process.Process
	if s.redis != nil {
		if redis, err = startRedis(ctx, redisAddr); err != nil {
			return sample{}, err
		}
		defer redis.Stop()
	}
	server, err := startServer(ctx, o, s, policies, redisAddr, grpcAddr, adminAddr)
	if err != nil {
		return sample{}, err
	}
	defer server.Stop()
	conns, err := dial(ctx, grpcAddr, o.connections)
	if err != nil {
		return sample{}, err
	}
	defer conns.close()
	if err := conns.warm(ctx); err != nil {
		return sample{}, err
	}
	if s.redis != nil {
		if err := s.redis(redis); err != nil {
			return sample{}, err
		}
	}
	return conns.load(ctx, o.streams, o.duration), nil
}

func startRedis(ctx context.Context, addr string) (*process.Process, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redis-server is not installed: %w", err)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	p, err := process.Start(process.Config{
		Name: "redis-server", Path: path,
		Args: []string{"--bind", host, "--port", port, "--save", "", "--appendonly", "no"},
	})
	if err != nil {
		return nil, err
	}
	return p, p.AwaitReady(ctx, process.Listens(addr))
}

func startServer(
	ctx context.Context, o options, s scenario, policies, redisAddr, grpcAddr, adminAddr string,
) (*process.Process, error) {
	if s.floor {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		p, err := process.Start(process.Config{Name: "floor", Path: self, Args: []string{"--serve-floor", grpcAddr}})
		if err != nil {
			return nil, err
		}
		return p, p.AwaitReady(ctx, process.Listens(grpcAddr))
	}
	args := []string{"serve", "--policies", policies, "--grpc", grpcAddr, "--admin", adminAddr, "--log-level", "error"}
	if s.redis != nil {
		args = append(args, "--redis", "redis://"+redisAddr)
	}
	p, err := process.Start(process.Config{Name: "ratelimit", Path: o.binary, Args: append(args, s.flags...)})
	if err != nil {
		return nil, err
	}
	return p, p.AwaitReady(ctx, process.HTTPOK("http://"+adminAddr+"/readyz"))
}
