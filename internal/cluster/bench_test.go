package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/topology"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// What a decision takes by how many slots its two buckets are in, when many are asked for at once.
func BenchmarkStore_Submit(b *testing.B) {
	set := startCluster(b, topology.Config{Replicas: topology.None})
	for _, slots := range []int{1, 2} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			r := run(b, quick(addresses(set)...)).serving()
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				for n := 0; pb.Next(); n++ {
					charges := make([]limit.Charge, 2)
					for i := range charges {
						key := fmt.Sprintf("{%d}:%d", n%1000, i)
						if slots > 1 {
							key = fmt.Sprintf("{%d:%d}", n%1000, i)
						}
						charges[i] = charge(key, yearly(limit.MaxTokens), 1)
					}
					c := failure.NewCall(charges, time.Now().Add(redistest.Patience))
					r.Submit(c)
					if <-c.Done(); c.Cause() != failure.CauseNone {
						b.Errorf("a call failed of %v", c.Cause())
						return
					}
				}
			})
		})
	}
}
