package sentinel_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/sentinel"
)

func ExampleNew() {
	w, err := sentinel.New(sentinel.Config{
		Master:    "mymaster",
		Addresses: []string{"127.0.0.1:26379", "127.0.0.1:26380"},
		Data:      redisstore.Access{Username: "ratelimit", PasswordFile: "/run/secrets/redis"},
		Sentinels: redisstore.Access{Username: "ratelimit", PasswordFile: "/run/secrets/sentinel"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { w.Run(ctx) })
	// Here w is what resolves and moves the lanes of a redisstore.Store.
	fmt.Println(w)
	cancel()
	watching.Wait()
	// Output: mymaster of the Sentinels 127.0.0.1:26379, 127.0.0.1:26380
}
