package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/cluster"
	"github.com/honestlimit/ratelimit/internal/redistest"
)

// TestSlot_AgreesWithRedis asks a real server, most of all about keys whose hash tag is odd.
func TestSlot_AgreesWithRedis(t *testing.T) {
	server := redistest.Start(t, redistest.Config{Args: []string{"--cluster-enabled", "yes"}})
	keys := []string{
		"", "{", "}", "{}", "{}a", "a{}b", "a{b}c", "a{b{c}d}e", "{{a}}", "a{b}{c}", "}a{b}", "a{b", "a}b{c", "\x00\xff{\xfe}",
		"rl:v1:{0123456789abcdef}:endpoint:1",
	}
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 18))
	for range 2000 {
		key := make([]byte, random.IntN(40))
		for i := range key {
			key[i] = "{}ab"[random.IntN(4)]
			if random.IntN(3) == 0 {
				key[i] = byte(random.IntN(256))
			}
		}
		keys = append(keys, string(key))
	}
	pipe := server.Client().Pipeline()
	var want []*redis.IntCmd
	for _, key := range keys {
		want = append(want, pipe.ClusterKeySlot(t.Context(), key))
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		if got := cluster.Slot(key); int64(got) != want[i].Val() {
			t.Errorf("Slot(%q) = %d, want %d", key, got, want[i].Val())
		}
	}
}

func TestSlot_KnownValues(t *testing.T) {
	// From the specification's own examples: CRC-16 of "123456789" is 0x31C3.
	if got := cluster.Slot("123456789"); got != 0x31c3 {
		t.Errorf("Slot = %#x, want 0x31c3", got)
	}
}

func BenchmarkSlot(b *testing.B) {
	key := fmt.Sprintf("rl:v1:{%032x}:mesh.endpoint:1", 1)
	for b.Loop() {
		cluster.Slot(key)
	}
}
