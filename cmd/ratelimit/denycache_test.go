package main

import (
	"encoding/json"
	"testing"

	"github.com/honestlimit/ratelimit/internal/redistest"
)

// A tenant that asks for more than it may is answered without Redis, unless a flag forbids it.
func TestServe_RemembersDenials(t *testing.T) {
	redis := redistest.Start(t, redistest.Config{})
	for name, c := range map[string]struct {
		flags []string
		cache bool
	}{
		"by default":       {nil, true},
		"with the flag":    {[]string{"--deny-cache"}, true},
		"against the flag": {[]string{"--no-deny-cache"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServe(t, nil, append(c.flags, "--policies", policyFile(t, mesh), "--budget", "2s",
				"--redis", "redis://"+redis.Addr())...)
			s.awaitMetric(t, "ratelimit_store_lanes_connected", 2)
			conn := dial(t, s.grpc, nil)
			for range 2 {
				mustDecide(t, conn, "pdftalk.ingest", name, "ALLOWED")
			}
			const flood = 200
			for range flood {
				if got := mustDecide(t, conn, "pdftalk.ingest", name, "RATE_LIMITED"); got.GetStatuses()[0].GetLimitRemaining() != 0 {
					t.Fatalf("answer %v", got)
				}
			}
			var page struct {
				Redis struct {
					DenyCache struct{ Hits, Kept int } `json:"deny_cache"`
				}
			}
			_, body := s.get(t, "/state")
			if err := json.Unmarshal([]byte(body), &page); err != nil {
				t.Fatal(err)
			}
			if got := page.Redis.DenyCache; c.cache != (got.Hits > 0) || c.cache != (got.Kept > 0) {
				t.Errorf("of %d requests %d were answered without Redis; the cache is on: %v", flood, got.Hits, c.cache)
			}
		})
	}
}
