package envoy_test

import (
	"fmt"
	"strings"

	"github.com/honestlimit/ratelimit/envoy"
)

func ExampleRender() {
	text, err := envoy.Render(envoy.Config{RateLimit: "127.0.0.1:8081"})
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Contains(text, `{address: "127.0.0.1", port_value: 8081}`))
	// Output: true
}
