package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/honestlimit/ratelimit/internal/load"
	"github.com/honestlimit/ratelimit/internal/memstore"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/test/sheet"
)

// sampled is over how many buckets memory is averaged.
const sampled = 100_000

// memoryFigures are in bytes for each bucket.
type memoryFigures struct {
	// Process is heap of the embedded store, key included, of KeyBytes.
	Process, KeyBytes float64
	// Redis is by subject.
	Redis map[string]redisMemory
}

type redisMemory struct {
	// Total is growth of used_memory: key, value, lifetime, and their share of the tables.
	// Usage is what MEMORY USAGE says of one bucket, which leaves out the lifetime's entry.
	Total, Usage, KeyBytes float64
}

// memory measures what a bucket takes where it is kept.
func (b *bench) memory(ctx context.Context) error {
	b.lab.sayf("memory")
	m := memoryFigures{Redis: map[string]redisMemory{}}
	for _, k := range b.kinds() {
		if !k.redis {
			continue
		}
		got, err := b.redisMemory(ctx, k)
		if err != nil {
			return err
		}
		m.Redis[k.name] = got
	}
	var err error
	if m.Process, m.KeyBytes, err = processMemory(); err != nil {
		return err
	}
	b.results.Memory = m
	return nil
}

func (b *bench) redisMemory(ctx context.Context, k kind) (m redisMemory, err error) {
	s, err := b.lab.start(ctx, k)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	before, err := infoOf(ctx, s.redisAddr)
	if err != nil {
		return m, err
	}
	if err := b.lab.fill(ctx, s, sampled); err != nil {
		return m, err
	}
	after, err := infoOf(ctx, s.redisAddr)
	if err != nil {
		return m, err
	}
	m.Total = (bucketMemory(after) - bucketMemory(before)) / sampled
	m.Usage, m.KeyBytes, err = memoryUsage(ctx, s.redisAddr)
	return m, err
}

// bucketMemory is what Redis uses without the buffers of its clients.
func bucketMemory(info samples) float64 { return info["used_memory"] - info["mem_clients_normal"] }

// processMemory is the heap that the embedded store holds for each bucket, with keys as long as a real one.
func processMemory() (bucket, key float64, err error) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		return 0, 0, err
	}
	rate := limit.Rate{Micro: limit.Micro, Period: limit.Micro} // 1/s
	charges := []limit.Charge{{Limit: limit.NewTokenBucket(1_000_000*limit.Micro, rate), Cost: 1}}
	before := heap()
	for i := range sampled {
		charges[0].Key = fmt.Sprintf("rl:v1:{%022d}:pdftalk.ingest:1", i)
		store.Submit(failure.NewCall(charges, time.Now()))
	}
	bytes := float64(heap()-before) / sampled
	if n := store.Stats().Buckets; n != sampled {
		return 0, 0, fmt.Errorf("the embedded store holds %d buckets, want %d", n, sampled)
	}
	return bytes, float64(len(charges[0].Key)), nil
}

// heap is what is in use after a collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // pools give up what they hold only at the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (r *results) memoryTable() string {
	t := sheet.NewTable("", "bytes a bucket", "of which key")
	t.Row("embedded store, heap", whole(r.Memory.Process), whole(r.Memory.KeyBytes))
	for _, name := range sortedKeys(r.Memory.Redis) {
		m := r.Memory.Redis[name]
		t.Row(fmt.Sprintf("Redis, %s (MEMORY USAGE of one: %s)", name, whole(m.Usage)), whole(m.Total),
			whole(m.KeyBytes))
	}
	return t.String()
}

// wireRow is what decisions cause between the service, Redis and a replica, for each decision.
type wireRow struct {
	Subject, Load string
	// Sent and Received are bytes between the service and Redis, Calls the commands that Redis got from it.
	Sent, Received, Calls float64
	// Replicated are bytes to one replica, Commands how many it executed.
	Replicated, Commands float64
}

// wire counts bytes and commands by Redis' own statistics, with one replica attached.
func (b *bench) wire(ctx context.Context) error {
	b.results.Wire = nil
	single := many()
	single.Rate, single.Streams = 200, 1 // so few that no two share a round trip
	loads := []struct {
		name string
		cfg  load.Config
	}{{"saturated, " + hotKey, hot()}, {"saturated, " + manyKeys, many()}, {"200 requests/s", single}}
	for _, k := range b.kinds() {
		for _, l := range loads {
			if !k.redis {
				continue
			}
			b.lab.sayf("wire: %s, %s", k.name, l.name)
			row, err := b.wireRun(ctx, k, l.cfg)
			if err != nil {
				return err
			}
			row.Subject, row.Load = k.name, l.name
			b.results.Wire = append(b.results.Wire, row)
		}
	}
	return nil
}

func (b *bench) wireRun(ctx context.Context, k kind, cfg load.Config) (row wireRow, err error) {
	s, err := b.lab.start(ctx, k)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	replica, err := startReplica(ctx, s.redisAddr)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, replica.stop()) }()
	before, err := counters(ctx, s.redisAddr, replica.addr)
	if err != nil {
		return row, err
	}
	cfg.Warmup = 1 // everything that is counted must be in the report
	report, err := b.lab.run(ctx, s, cfg, b.opts.duration)
	if err != nil {
		return row, err
	}
	after, err := counters(ctx, s.redisAddr, replica.addr)
	if err != nil {
		return row, err
	}
	per := func(name string) float64 { return (after[name] - before[name]) / float64(report.All.Requests) }
	repl := per("total_net_repl_output_bytes")
	row.Received, row.Sent = per("total_net_output_bytes")-repl, per("total_net_input_bytes")
	row.Replicated, row.Commands, row.Calls = repl, per("replica_writes"), per("calls")
	return row, nil
}

func (r *results) wireTable() string {
	t := sheet.NewTable(
		"", "", "commands to Redis", "bytes to Redis", "bytes back", "commands replicated", "bytes replicated",
	)
	for _, w := range r.Wire {
		t.Row(w.Subject, w.Load, digits(w.Calls, 2), whole(w.Sent), whole(w.Received), digits(w.Commands, 2),
			whole(w.Replicated))
	}
	return t.String()
}
