package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/honestlimit/ratelimit/internal/load"
)

// domain of all requests.
const domain = "bench"

// usualPolicies hold a limit that nobody reaches, and whose buckets take an hour to regain a token: none is full again,
// and so forgotten, while the load lasts, and each decision reads one state and writes another. The second one is there
// to be flooded.
const usualPolicies = `domain: bench
policies:
  - endpoint_id: bench
    descriptor: [{key: endpoint_id, value: bench}, {key: tenant}]
    token_bucket: {rate: 1/h, burst: 1000000}
    fail_mode: fail_closed
  - endpoint_id: flood
    descriptor: [{key: endpoint_id, value: flood}, {key: tenant}]
    token_bucket: {rate: 100/s, burst: 100}
    fail_mode: fail_closed
`

// tenants is how many buckets a load is spread over that is not about one.
const tenants = 10_000

// Names of the workloads.
const (
	hotKey   = "one key"
	manyKeys = "10,000 tenants"
	openAt35 = "open loop at 35 %"
	openAt70 = "open loop at 70 %"
)

// workloads are measured in this order, those of an open loop at a part of what the closed one before them managed.
var workloads = []struct {
	name string
	part float64
}{{hotKey, 0}, {manyKeys, 0}, {openAt35, 0.35}, {openAt70, 0.7}}

// usual asks about one tenant, or about "{key}".
func usual(tenant string) [][]load.Entry { return endpoint("bench", tenant) }

func endpoint(id, tenant string) [][]load.Entry {
	return [][]load.Entry{{{Key: "endpoint_id", Value: id}, {Key: "tenant", Value: tenant}}}
}

// hot is a closed loop on one bucket, many on 10,000 of them.
func hot() load.Config  { return load.Config{Domain: domain, Descriptors: usual("acme")} }
func many() load.Config { return keyed(tenants) }

func keyed(keys int) load.Config {
	return load.Config{Domain: domain, Descriptors: usual("t" + load.KeyPlaceholder), Keys: keys}
}

// run loads s for d, after a warm-up that is not reported.
func (l *lab) run(ctx context.Context, s *subject, cfg load.Config, d time.Duration) (load.Report, error) {
	cfg.Target, cfg.PIDs, cfg.Duration = s.addr, s.pids(), d
	cfg.Connections, cfg.Drain = l.opts.connections, 2*time.Second
	if cfg.Rate == 0 {
		cfg.Streams = l.opts.streams
	}
	if cfg.Warmup == 0 {
		cfg.Warmup = l.opts.warmup
	}
	report, err := load.Run(ctx, cfg)
	if err != nil {
		return report, fmt.Errorf("%s: %w", s.name, err)
	}
	return report, nil
}

// fill makes a bucket for each of keys tenants, through the front door: many in one request, few requests at a time,
// so that no single call to Redis becomes long.
func (l *lab) fill(ctx context.Context, s *subject, keys int) error {
	f, err := newFiller(s.addr)
	if err != nil {
		return err
	}
	defer f.close()
	if err := f.fill(ctx, keys); err != nil {
		return fmt.Errorf("%s: making %d buckets: %w", s.name, keys, err)
	}
	return kept(ctx, s, keys)
}

// kept checks that Redis has as many buckets as were made, and that of the first request.
func kept(ctx context.Context, s *subject, keys int) error {
	if s.redis == nil {
		return nil
	}
	client := redisClient(s.redisAddr)
	defer client.Close()
	n, err := client.DBSize(ctx).Result()
	if err == nil && n != int64(keys)+1 {
		err = fmt.Errorf("%s: Redis holds %d buckets, want %d", s.name, n, keys+1)
	}
	return err
}

// plural writes "1 core" and "2 cores".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// answersOf says what share of the answers was of which kind, in percent.
func answersOf(rounds []load.Report) string {
	names := map[string]string{"OK": "OK", "OVER_LIMIT": "429", "error": "503", "unanswered": "no answer"}
	sums, all := map[string]int64{}, int64(0)
	for _, r := range rounds {
		for _, a := range r.All.Answers {
			name := names[a.Answer]
			if a.Answer == "error" && a.Reason != "FailedPrecondition" {
				name = a.Reason
			}
			sums[name] += a.Requests
			all += a.Requests
		}
	}
	var parts []string
	for _, name := range sortedKeys(sums) {
		parts = append(parts, fmt.Sprintf("%s %s %%", name, digits(100*float64(sums[name])/float64(all), 4)))
	}
	return strings.Join(parts, ", ")
}
