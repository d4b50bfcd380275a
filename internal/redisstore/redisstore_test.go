package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/scripts"
)

func TestNew_ReportsEveryFault(t *testing.T) {
	_, err := redisstore.New(at(t, "redis://h"), newLog(), redisstore.Config{
		Lanes: -1, QueueSize: -1, SocketTimeout: -1, BackoffMin: time.Minute,
	})
	for _, want := range []string{"lanes is -1", "queue size is -1", "socket timeout is -1ns", "reversed"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	if _, err := redisstore.New(nil, newLog(), redisstore.Config{}); err == nil {
		t.Error("New accepted a store without a resolver")
	}
}

func ExampleNew() {
	resolver, err := redisstore.NewStandalone("redis://127.0.0.1:6379", redisstore.Access{})
	if err != nil {
		panic(err)
	}
	breaker, err := failure.NewBreaker(failure.BreakerConfig{})
	if err != nil {
		panic(err)
	}
	store, err := redisstore.New(resolver, breaker, redisstore.Config{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()       // a service runs it until it stops
	store.Run(ctx) // connects, serves, and returns when ctx has ended
	fmt.Println(store.Stats().Connected)
	// Output: 0
}

// BenchmarkStore compares decisions over the lanes with one pooled EVALSHA each, from many callers at once.
func BenchmarkStore(b *testing.B) {
	server := redistest.Start(b, redistest.Config{})
	b.Run("client=lanes", func(b *testing.B) {
		r := run(b, at(b, server.URL()), redisstore.Config{NoDenyCache: true})
		r.serving()
		concurrently(b, server, func() error { return r.decide(charge("k", 1)) })
	})
	b.Run("client=pool", func(b *testing.B) {
		client := redis.NewClient(&redis.Options{
			Addr: server.Addr(), PoolSize: 64, MaxRetries: -1, DisableIdentity: true, Protocol: 2,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		defer func() { _ = client.Close() }()
		sha, err := client.ScriptLoad(context.Background(), scripts.Decide()).Result()
		if err != nil {
			b.Fatal(err)
		}
		concurrently(b, server, func() error {
			c := charge("k", 1)
			packed := scripts.AppendRequest(nil, []limit.Charge{c})
			return client.EvalSha(context.Background(), sha, []string{c.Key}, packed).Err()
		})
	})
}

// BenchmarkStore_Flood is a flood of one tenant that is allowed a token an hour.
func BenchmarkStore_Flood(b *testing.B) {
	server := redistest.Start(b, redistest.Config{})
	flooding := charge("flood", 1)
	flooding.Limit = hourly(1)
	for _, cache := range []string{"on", "off"} {
		b.Run("deny_cache="+cache, func(b *testing.B) {
			r := run(b, at(b, server.URL()), redisstore.Config{NoDenyCache: cache == "off"}).serving()
			calls := scriptCalls(b, server.Client())
			concurrently(b, server, func() error { return r.decide(flooding) })
			calls = scriptCalls(b, server.Client()) - calls
			b.ReportMetric(float64(calls)/float64(b.N), "script-calls/op")
		})
	}
}

// decide makes one call and waits for it.
func (r *rig) decide(ch limit.Charge) error {
	c := r.submit(ch)
	<-c.Done()
	if c.Cause() != failure.CauseNone {
		return fmt.Errorf("%v", c.Cause())
	}
	return nil
}

// concurrently makes b.N decisions from 64 goroutines a core. It reports what they cost Redis and this process in CPU.
func concurrently(b *testing.B, server *redistest.Server, decide func() error) {
	b.ReportAllocs()
	before, own := server.CPU(), ownCPU(b)
	b.SetParallelism(64)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := decide(); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(float64((server.CPU()-before).Nanoseconds())/float64(b.N), "redis-ns/op")
	b.ReportMetric(float64((ownCPU(b)-own).Nanoseconds())/float64(b.N), "client-ns/op")
}

// ownCPU is the CPU time that this process has used.
func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
