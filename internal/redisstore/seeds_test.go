package redisstore_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/redisstore"
)

func TestParseSeeds(t *testing.T) {
	for raw, want := range map[string]redisstore.Seeds{
		"sentinel://a/m":         {Topology: redisstore.Sentinel, Addresses: []string{"a:26379"}, Master: "m"},
		"sentinel://a:1,b/m?db=": {Topology: redisstore.Sentinel, Addresses: []string{"a:1", "b:26379"}, Master: "m"},
		"sentinel://u:p%40%2F@a,[::1]:2,[::2]/m.n-1?db=3": {
			Topology: redisstore.Sentinel, Addresses: []string{"a:26379", "[::1]:2", "[::2]:26379"}, Master: "m.n-1",
			Username: "u", Password: "p@/", DB: 3,
		},
		"cluster://a,b:7001":  {Topology: redisstore.Cluster, Addresses: []string{"a:6379", "b:7001"}},
		"cluster://u@a:7000/": {Topology: redisstore.Cluster, Addresses: []string{"a:7000"}, Username: "u"},
	} {
		got, err := redisstore.ParseSeeds(raw)
		if err != nil {
			t.Errorf("ParseSeeds(%q): %v", raw, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ParseSeeds(%q) differs (-want +got):\n%s", raw, diff)
		}
	}
}

func TestParseSeeds_ErrorsAreClearAndDiscreet(t *testing.T) {
	for raw, want := range map[string]string{
		"redis://h":                 "must start with sentinel:// or cluster://",
		"sentinel://hunter2":        "must end with the master's name",
		"sentinel://a,b":            "must end with the master's name",
		"sentinel://a/":             "must end with the master's name",
		"sentinel://a/m/hunter2":    "must end with the master's name",
		"sentinel:///m":             "names no host",
		"sentinel://a,,b/m":         "comma too many",
		"sentinel://u:hunter2@/m":   "names no host",
		"sentinel://u:hun/ter2@a/m": "percent-encoded",
		"sentinel://u:%zz@a/m":      "percent-encoded",
		"sentinel://%zz:x@a/m":      "percent-encoded",
		"sentinel://a:0/m":          "from 1 to 65535",
		"sentinel://a:hunter2/m":    "from 1 to 65535",
		"sentinel://::1/m":          "without brackets",
		"sentinel://a:1:2/m":        "more than one port",
		"sentinel://a/m?db=x":       "no number from 0 up",
		"sentinel://a/m?hunter2=1":  "other than db",
		"sentinel://a?x/m":          "before its path",
		"cluster://a/0":             "of which a Cluster has none",
		"cluster://a/?db=1":         "of which a Cluster has none",
	} {
		_, err := redisstore.ParseSeeds(raw)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseSeeds(%q): %v, want an error with %q", raw, err, want)
		} else if strings.Contains(err.Error(), "hun") {
			t.Errorf("ParseSeeds(%q) shows the password: %v", raw, err)
		}
	}
}
