package scripts_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/scripts"
)

// What a decision costs Redis in CPU, by how many share a call and a bucket: system calls, finding the script and TIME
// are paid for each call, reading and writing for each bucket of it.
func BenchmarkDecide(b *testing.B) {
	server := redistest.Start(b, redistest.Config{})
	client := server.Client()
	sha, err := client.ScriptLoad(b.Context(), scripts.Decide()).Result()
	if err != nil {
		b.Fatal(err)
	}
	l := limit.NewTokenBucket(1_000_000*limit.Micro, limit.Rate{Micro: limit.Micro, Period: limit.Micro})
	for _, keys := range []int{1, 10_000} {
		for _, batch := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("keys=%d/batch=%d", keys, batch), func(b *testing.B) {
				before, n := server.CPU(), 0
				for b.Loop() {
					requests := make([][]limit.Charge, batch)
					for i := range requests {
						n++
						requests[i] = []limit.Charge{charge(fmt.Sprintf("rl:v1:{hash-of-tenant-%06d}:e:1", n%keys), l, 1)}
					}
					cmd := redis.NewStringCmd(b.Context(), decideArgs(sha, requests...)...)
					if err := client.Process(b.Context(), cmd); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64((server.CPU()-before).Nanoseconds())/float64(n), "redis-ns/decision")
			})
		}
	}
}
