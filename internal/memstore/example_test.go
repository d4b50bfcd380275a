package memstore_test

import (
	"fmt"
	"time"

	"github.com/honestlimit/ratelimit/internal/memstore"
	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

func ExampleNew() {
	store, err := memstore.New(memstore.Config{MaxBuckets: 1000})
	if err != nil {
		panic(err)
	}
	daily := limit.NewTokenBucket(limit.Micro, limit.Rate{Micro: limit.Micro, Period: 86400 * limit.Micro})
	for range 2 {
		c := failure.NewCall([]limit.Charge{{Key: "k", Limit: daily, Cost: 1}}, time.Now().Add(time.Second))
		store.Submit(c)
		<-c.Done()
		fmt.Println(c.Results[0].Allowed)
	}
	// Output:
	// true
	// false
}
