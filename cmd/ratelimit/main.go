// Command ratelimit is a rate limit service for Envoy: it answers ShouldRateLimit, and stays answering while its
// store is away. Here its parts are put together; what they do is in pkg and internal.
package main

import "os"

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
