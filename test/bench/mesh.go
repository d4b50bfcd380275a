package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/test/sheet"
)

// envoyConfig serves two paths, one of them after asking the service.
//
//go:embed envoy.yaml
var envoyConfig string

// meshRound is what one caller saw through Envoy, in seconds.
type meshRound struct {
	Free, Limited, Added quantiles
	Requests             int // with limiting
}

type quantiles struct{ P50, P99 float64 }

// mesh measures what asking the service adds to a request through Envoy. One caller alternates between a route with
// limiting and one without, so that both see the same machine.
func (b *bench) mesh(ctx context.Context) (err error) {
	b.results.Mesh = nil
	s, err := b.lab.start(ctx, redisKind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	edge, err := b.startEnvoy(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, edge.stop()) }()
	for round := range b.opts.rounds {
		b.lab.sayf("through Envoy, round %d of %d", round+1, b.opts.rounds)
		r, err := b.meshRun(ctx, edge.addr)
		if err != nil {
			return err
		}
		if err := asked(ctx, s.admin, r.Requests); err != nil {
			return err
		}
		b.results.Mesh = append(b.results.Mesh, r)
	}
	return nil
}

func (b *bench) startEnvoy(ctx context.Context, s *subject) (*subject, error) {
	path, err := process.Envoy(ctx)
	if err != nil {
		return nil, err
	}
	addrs, err := process.FreeAddresses(3)
	if err != nil {
		return nil, err
	}
	swaps := []string{
		"EDGE_PORT", port(addrs[0]), "ADMIN_PORT", port(addrs[1]), "BACKEND_PORT", port(addrs[2]),
		"SERVICE_PORT", port(s.addr),
	}
	file := filepath.Join(b.lab.dir, "envoy.yaml")
	if err := os.WriteFile(file, []byte(strings.NewReplacer(swaps...).Replace(envoyConfig)), 0o600); err != nil {
		return nil, err
	}
	e := &subject{addr: addrs[0]}
	e.server, err = process.Start(process.Config{Name: "envoy", Path: path, Args: []string{
		"--config-path", file, "--concurrency", "1", "--disable-hot-restart", "--log-level", "error",
	}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := e.server.AwaitReady(ctx, process.HTTPOK("http://"+addrs[0]+"/limited")); err != nil {
		return nil, errors.Join(err, e.stop())
	}
	return e, nil
}

func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}

func (b *bench) meshRun(ctx context.Context, edge string) (meshRound, error) {
	var free, limited, added []float64
	for until := time.Now().Add(b.opts.warmup + b.opts.duration); time.Now().Before(until); {
		f, err := get(ctx, "http://"+edge+"/free")
		if err != nil {
			return meshRound{}, err
		}
		l, err := get(ctx, "http://"+edge+"/limited")
		if err != nil {
			return meshRound{}, err
		}
		free, limited, added = append(free, f), append(limited, l), append(added, l-f)
	}
	return meshRound{
		Free: quantilesOf(free), Limited: quantilesOf(limited), Added: quantilesOf(added), Requests: len(limited),
	}, nil
}

// asked checks that Envoy asked the service: a configuration that does not would look fast.
func asked(ctx context.Context, admin string, requests int) error {
	m, err := scrape(ctx, admin)
	if err != nil {
		return err
	}
	if n := m[rpcsMetric]; int(n) < requests {
		return fmt.Errorf("the service was asked %v times for %d requests", n, requests)
	}
	return nil
}

// get returns the seconds that one request took.
func get(ctx context.Context, url string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return time.Since(start).Seconds(), nil
}

func quantilesOf(values []float64) quantiles {
	slices.Sort(values)
	at := func(q float64) float64 { return values[min(len(values)-1, int(q*float64(len(values))))] }
	return quantiles{P50: at(0.5), P99: at(0.99)}
}

func (r *results) meshTable() string {
	t := sheet.NewTable("through Envoy, one request at a time", "p50", "p99")
	add := func(name string, of func(meshRound) quantiles) {
		p50 := over(r.Mesh, func(m meshRound) float64 { return of(m).P50 })
		p99 := over(r.Mesh, func(m meshRound) float64 { return of(m).P99 })
		t.Row(name, p50.show(span), p99.show(span))
	}
	add("route without limiting", func(m meshRound) quantiles { return m.Free })
	add("route with limiting, through Redis", func(m meshRound) quantiles { return m.Limited })
	add("added, request by request", func(m meshRound) quantiles { return m.Added })
	return t.String()
}
