package scripts_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/scripts"
)

// atLua makes decide.lua believe that it is the time in its last argument, and keeps lifetimes as values instead of
// letting them run out: the script under test is otherwise the real one.
const atLua = `
local real, clock = redis.call, table.remove(ARGV)
local redis = {call = function(command, key, value, px, ttl)
  if command == 'TIME' then
    local us = tonumber(clock)
    return {tostring(math.floor(us / 1000000)), tostring(us % 1000000)}
  elseif command == 'SET' then
    assert(px == 'PX')
    real('SET', key .. ':px', ttl)
    return real('SET', key, value)
  end
  return real(command, key)
end}
`

type charge struct {
	key   string
	limit limit.Limit
	cost  int64
}

func decideArgs(sha string, charges []charge) []any {
	args := []any{"evalsha", sha, len(charges)}
	for _, c := range charges {
		args = append(args, c.key)
	}
	for _, c := range charges {
		args = append(args, uint8(c.limit.Algorithm), c.limit.Capacity, c.limit.Refill, c.limit.Period, c.cost)
	}
	return args
}

// model is what the script must do, in Go.
type model struct {
	states map[string]limit.State
	kinds  map[string]limit.Algorithm
	ttl    map[string]int64
}

func (m model) decide(charges []charge, now int64) (reply []int64) {
	states, waits, admitted := make([]limit.State, len(charges)), make([]int64, len(charges)), true
	for i, c := range charges {
		var s limit.State
		if m.kinds[c.key] == c.limit.Algorithm {
			s = m.states[c.key]
		}
		states[i] = c.limit.Advance(s, now)
		waits[i] = c.limit.Wait(states[i], now, c.cost)
		admitted = admitted && waits[i] == 0
	}
	for i, c := range charges {
		s := states[i]
		if admitted {
			s = c.limit.Spend(s, c.cost)
		}
		reset := min(c.limit.Reset(s, now), 1<<52)
		if admitted && c.cost > 0 {
			m.states[c.key], m.kinds[c.key], m.ttl[c.key] = s, c.limit.Algorithm, (reset+999)/1000
		}
		allowed := int64(0)
		if waits[i] == 0 {
			allowed = 1
		}
		reply = append(reply, allowed, c.limit.Remaining(s, now), min(waits[i], 1<<52), reset)
	}
	return reply
}

// TestDecide_FollowsTheModel runs requests over several buckets, of changing algorithms, at random times, and
// compares replies, stored states and lifetimes with what Go says.
func TestDecide_FollowsTheModel(t *testing.T) {
	const requests = 4000
	ctx, random := t.Context(), seeded(t)
	client := redistest.Start(t, redistest.Config{}).Client()
	sha, err := client.ScriptLoad(ctx, atLua+scripts.Decide()).Result()
	if err != nil {
		t.Fatal(err)
	}
	want := model{map[string]limit.State{}, map[string]limit.Algorithm{}, map[string]int64{}}
	limits := map[string]limit.Limit{}
	pipe := client.Pipeline()
	var replies []*redis.IntSliceCmd
	var wanted [][]int64
	now, denied, charged := int64(1<<50), 0, 0
	for range requests {
		var charges []charge
		for _, n := range random.Perm(6)[:1+random.IntN(4)] {
			key := fmt.Sprintf("k%d", n)
			if l, ok := limits[key]; !ok || random.IntN(10) == 0 {
				limits[key] = randomLimit(random)
			} else {
				now = randomClock(random, now, l)
			}
			charges = append(charges, charge{key, limits[key], smallCost(random.IntN(20), limits[key])})
		}
		cmd := redis.NewIntSliceCmd(ctx, append(decideArgs(sha, charges), now)...)
		_ = pipe.Process(ctx, cmd)
		replies = append(replies, cmd)
		wanted = append(wanted, want.decide(charges, now))
		if strings.Contains(fmt.Sprint(wanted[len(wanted)-1]), "[0") {
			denied++
		} else {
			charged++
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	for i, r := range replies {
		if diff := cmp.Diff(wanted[i], r.Val()); diff != "" {
			t.Fatalf("request %d: %v differs (-go +lua):\n%s", i, r.Args(), diff)
		}
	}
	if denied < requests/20 || charged < requests/20 {
		t.Errorf("%d denied, %d charged: the requests do not cover both", denied, charged)
	}
	for key, s := range want.states {
		if got, algorithm := stored(t, client, key); got != s || algorithm != want.kinds[key] {
			t.Errorf("%s holds %+v (%v), want %+v (%v)", key, got, algorithm, s, want.kinds[key])
		}
		if got, _ := client.Get(ctx, key+":px").Int64(); got != want.ttl[key] {
			t.Errorf("%s was given a lifetime of %d ms, want %d", key, got, want.ttl[key])
		}
	}
}

func smallCost(n int, l limit.Limit) int64 {
	switch {
	case n < 2:
		return 0
	case n < 10:
		return 1
	case n < 18:
		return max(1, l.Tokens()/int64(n))
	default:
		return min(limit.MaxTokens, l.Tokens()+1)
	}
}

// stored decodes a bucket's value by the layout that decide.lua documents.
func stored(t *testing.T, client *redis.Client, key string) (limit.State, limit.Algorithm) {
	t.Helper()
	raw, err := client.Get(t.Context(), key).Bytes()
	if err != nil || len(raw) != 22 {
		t.Fatalf("%s holds %x, %v; want 22 bytes", key, raw, err)
	}
	number := func(at int) int64 {
		return int64(binary.BigEndian.Uint64(append([]byte{0}, raw[at:at+7]...)))
	}
	return limit.State{At: number(1), Level: number(8), Rest: number(15)}, limit.Algorithm(raw[0])
}

func decide(t *testing.T, client *redis.Client, charges ...charge) []int64 {
	t.Helper()
	ctx := t.Context()
	sha, err := client.ScriptLoad(ctx, scripts.Decide()).Result()
	if err != nil {
		t.Fatal(err)
	}
	cmd := redis.NewIntSliceCmd(ctx, decideArgs(sha, charges)...)
	if err := client.Process(ctx, cmd); err != nil {
		t.Fatal(err)
	}
	return cmd.Val()
}

var (
	minutely = limit.NewTokenBucket(10*limit.Micro, limit.Rate{Micro: limit.Micro, Period: 60 * limit.Micro})
	yearly   = limit.NewTokenBucket(limit.MaxTokens*limit.Micro, limit.Rate{Micro: limit.Micro, Period: limit.MaxPeriod})
	windowed = limit.Limit{Algorithm: limit.SlidingWindow, Capacity: 10, Period: 600 * limit.Micro}
)

// TestDecide_DeniedAndAskedWriteNothing looks at the command count, the value and the moment of expiry.
func TestDecide_DeniedAndAskedWriteNothing(t *testing.T) {
	ctx := t.Context()
	client := redistest.Start(t, redistest.Config{}).Client()
	for name, l := range map[string]limit.Limit{"token bucket": minutely, "sliding window": windowed} {
		t.Run(name, func(t *testing.T) {
			client.FlushAll(ctx)
			decide(t, client, charge{"full", l, 10})
			before := snapshot(t, client)
			for _, charges := range [][]charge{
				{{"full", l, 1}},
				{{"full", l, 0}},
				{{"untouched", l, 0}},
				{{"untouched", l, 11}},
				{{"untouched", l, 1}, {"full", l, 1}},
				{{"full", l, 1}, {"untouched", l, 1}},
			} {
				decide(t, client, charges...)
				if diff := cmp.Diff(before, snapshot(t, client)); diff != "" {
					t.Errorf("%v wrote (-before +after):\n%s", charges, diff)
				}
			}
			decide(t, client, charge{"other", l, 1})
			if cmp.Equal(before, snapshot(t, client)) {
				t.Error("a charge left no trace: this test sees nothing")
			}
		})
	}
}

// snapshot is everything that a write would change.
func snapshot(t *testing.T, client *redis.Client) map[string]string {
	t.Helper()
	ctx := t.Context()
	keys, err := client.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{"writes": writes(t, client)}
	for _, k := range keys {
		out[k] = fmt.Sprintf("%q expires at %v", client.Dump(ctx, k).Val(), client.Do(ctx, "pexpiretime", k).Val())
	}
	return out
}

// writes is the number of calls of every command that can write.
func writes(t *testing.T, client *redis.Client) string {
	t.Helper()
	info, err := client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(line, ":")
		switch strings.TrimPrefix(name, "cmdstat_") {
		case "set", "pexpire", "expire", "pexpireat", "del", "getex":
			calls, _, _ := strings.Cut(rest, ",")
			out = append(out, name+":"+calls)
		}
	}
	return strings.Join(out, " ")
}

func TestDecide_OneSetWithLifetimePerChargedBucket(t *testing.T) {
	client := redistest.Start(t, redistest.Config{}).Client()
	charges := []charge{{"a", minutely, 3}, {"b", windowed, 1}, {"c", yearly, limit.MaxTokens}, {"d", minutely, 0}}
	reply := decide(t, client, charges...)
	if got, want := writes(t, client), "cmdstat_set:calls=3"; got != want {
		t.Errorf("commands that wrote: %s, want %s", got, want)
	}
	for i, c := range charges[:3] {
		s, _ := stored(t, client, c.key)
		at, err := client.Do(t.Context(), "pexpiretime", c.key).Int64()
		if err != nil {
			t.Fatal(err)
		}
		// The state of a fresh bucket carries the time of the decision.
		life, want := at-s.At/1000, (reply[i*4+3]+999)/1000
		if life < want-2 || life > want+20 {
			t.Errorf("%s lives for %d ms, want its reset after rounded up, %d", c.key, life, want)
		}
	}
}

func TestDecide_StateOfAnotherAlgorithmStartsAnew(t *testing.T) {
	client := redistest.Start(t, redistest.Config{}).Client()
	decide(t, client, charge{"k", minutely, 10})
	if got := decide(t, client, charge{"k", windowed, 4}); got[0] != 1 || got[1] != 6 {
		t.Errorf("first charge after the switch: allowed %d, remaining %d; want 1, 6", got[0], got[1])
	}
	if _, algorithm := stored(t, client, "k"); algorithm != limit.SlidingWindow {
		t.Errorf("stored state is of %v", algorithm)
	}
	client.Set(t.Context(), "k", "rubbish", 0)
	if got := decide(t, client, charge{"k", windowed, 4}); got[0] != 1 || got[1] != 6 {
		t.Errorf("first charge over rubbish: allowed %d, remaining %d; want 1, 6", got[0], got[1])
	}
}

func TestDecide_HugeNumbersSurviveStorage(t *testing.T) {
	client := redistest.Start(t, redistest.Config{}).Client()
	reply := decide(t, client, charge{"k", yearly, 1})
	s, _ := stored(t, client, "k")
	if want := int64(limit.MaxTokens-1) * limit.Micro; s.Level != want {
		t.Errorf("level is %d, want %d", s.Level, want)
	}
	if reply[1] != limit.MaxTokens-1 || reply[3] != limit.MaxPeriod {
		t.Errorf("remaining %d, reset after %d; want %d, %d", reply[1], reply[3], limit.MaxTokens-1, int64(limit.MaxPeriod))
	}
	reply = decide(t, client, charge{"k", yearly, limit.MaxTokens - 1})
	// A billion tokens at one a year: the reset saturates, and still fits a lifetime.
	if reply[0] != 1 || reply[1] != 0 || reply[3] != 1<<52 {
		t.Errorf("emptied: %v, want allowed 1, remaining 0, reset after 2^52", reply)
	}
}
