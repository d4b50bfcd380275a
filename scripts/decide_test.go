package scripts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/scripts"
)

// atLua makes decide.lua believe that it is the time in its last argument, and keeps lifetimes as values instead of
// letting them run out: the script under test is otherwise the real one.
const atLua = `
local real, clock = redis, table.remove(ARGV)
local redis = {pcall = real.pcall, call = function(command, key, value, px, ttl)
  if command == 'TIME' then
    local us = tonumber(clock)
    return {tostring(math.floor(us / 1000000)), tostring(us % 1000000)}
  elseif command == 'SET' then
    assert(px == 'PX')
    real.call('SET', key .. ':px', ttl)
    return real.call('SET', key, value)
  end
  return real.call(command, key)
end}
`

func charge(key string, l limit.Limit, cost int64) limit.Charge {
	return limit.Charge{Key: key, Limit: l, Cost: cost}
}

// asked marks a request that is to be decided and not charged: its first charge has this key. There is no such bucket.
const asked = "asked"

func decideArgs(sha string, requests ...[]limit.Charge) []any {
	var keys []any
	var packed []byte
	for _, charges := range requests {
		if question(charges) {
			charges = charges[1:]
			packed = scripts.AppendQuestion(packed, charges)
		} else {
			packed = scripts.AppendRequest(packed, charges)
		}
		for _, c := range charges {
			keys = append(keys, c.Key)
		}
	}
	return append(append([]any{"evalsha", sha, len(keys)}, keys...), packed)
}

func question(charges []limit.Charge) bool { return charges[0].Key == asked }

// timed takes the time off a reply.
func timed(t *testing.T, reply string) (rest string, at int64) {
	t.Helper()
	rest, at, ok := scripts.ReadTime(reply)
	if !ok {
		t.Fatalf("reply %x holds no time", reply)
	}
	return rest, at
}

// read takes a reply apart, without its time.
func read(t *testing.T, reply string, requests ...[]limit.Charge) (all [][]limit.Result) {
	t.Helper()
	for _, charges := range requests {
		if question(charges) {
			charges = charges[1:]
		}
		results := make([]limit.Result, len(charges))
		rest, reading := scripts.ReadResults(reply, results)
		if reading != scripts.Decided {
			t.Fatalf("reply %x of %d charges reads as %v", reply, len(charges), reading)
		}
		reply, all = rest, append(all, results)
	}
	if reply != "" {
		t.Fatalf("the reply goes on with %x", reply)
	}
	return all
}

// model is what the script must do, in Go.
type model struct {
	states map[string]limit.State
	kinds  map[string]limit.Algorithm
	ttl    map[string]int64
}

func (m model) decide(charges []limit.Charge, now int64) (results []limit.Result) {
	charged := !question(charges)
	if !charged {
		charges = charges[1:]
	}
	if charges[0].Cost < 0 {
		return m.refund(charges, now)
	}
	states, waits, admitted := make([]limit.State, len(charges)), make([]int64, len(charges)), true
	for i, c := range charges {
		var s limit.State
		if m.kinds[c.Key] == c.Limit.Algorithm {
			s = m.states[c.Key]
		}
		states[i] = c.Limit.Advance(s, now)
		waits[i] = c.Limit.Wait(states[i], now, c.Cost)
		admitted = admitted && waits[i] == 0
	}
	for i, c := range charges {
		s := states[i]
		if admitted && charged {
			s = c.Limit.Spend(s, c.Cost)
		}
		if admitted && charged && c.Cost > 0 {
			m.keep(c, s, now)
		}
		results = append(results, c.Limit.Report(s, now, waits[i]))
	}
	return results
}

func (m model) refund(charges []limit.Charge, now int64) (results []limit.Result) {
	for _, c := range charges {
		s, known := m.states[c.Key]
		if m.kinds[c.Key] != c.Limit.Algorithm {
			s, known = limit.State{}, false
		}
		s = c.Limit.Advance(s, now)
		if known {
			s = c.Limit.Refund(s, now, -c.Cost, c.At)
			m.keep(c, s, now)
		}
		results = append(results, c.Limit.Report(s, now, 0))
	}
	return results
}

func (m model) keep(c limit.Charge, s limit.State, now int64) {
	m.states[c.Key], m.kinds[c.Key] = s, c.Limit.Algorithm
	m.ttl[c.Key] = max(1, (min(c.Limit.Reset(s, now), 1<<52)+999)/1000)
}

// TestDecide_FollowsTheModel runs batches of requests over several buckets, of changing algorithms, at random times,
// and compares replies, stored states and lifetimes with what Go says of one request after the other.
func TestDecide_FollowsTheModel(t *testing.T) {
	const batches = 2000
	ctx, random := t.Context(), seeded(t)
	client := redistest.Start(t, redistest.Config{}).Client()
	sha, err := client.ScriptLoad(ctx, atLua+scripts.Decide()).Result()
	if err != nil {
		t.Fatal(err)
	}
	want := model{map[string]limit.State{}, map[string]limit.Algorithm{}, map[string]int64{}}
	limits := map[string]limit.Limit{}
	pipe := client.Pipeline()
	var replies []*redis.StringCmd
	var times []int64
	var sent [][][]limit.Charge
	var wanted [][][]limit.Result
	var made []limit.Charge // what was admitted, and may be taken back
	now, denied, charged, refunded := int64(1<<50), 0, 0, 0
	for range batches {
		var requests [][]limit.Charge
		for range 1 + random.IntN(5) {
			var charges []limit.Charge
			for _, n := range random.Perm(6)[:1+random.IntN(4)] {
				key := fmt.Sprintf("k%d", n)
				if l, ok := limits[key]; !ok || random.IntN(10) == 0 {
					limits[key] = randomLimit(random)
				} else if len(requests) == 0 {
					now = randomClock(random, now, l)
				}
				charges = append(charges, charge(key, limits[key], smallCost(random.IntN(20), limits[key])))
			}
			switch {
			case len(made) > 0 && random.IntN(3) == 0:
				n := random.IntN(len(made))
				charges, made = []limit.Charge{made[n]}, slices.Delete(made, n, n+1)
				charges[0].Cost = -charges[0].Cost
				refunded++
			case random.IntN(5) == 0:
				charges = append([]limit.Charge{{Key: asked}}, charges...)
			}
			requests = append(requests, charges)
		}
		var results [][]limit.Result
		for _, charges := range requests {
			r := want.decide(charges, now)
			results = append(results, r)
			switch {
			case slices.ContainsFunc(r, func(r limit.Result) bool { return !r.Allowed }):
				denied++
			case !question(charges) && charges[0].Cost >= 0:
				charged++
				for _, c := range charges {
					if c.At = now; c.Cost > 0 {
						made = append(made, c)
					}
				}
			}
		}
		cmd := redis.NewStringCmd(ctx, append(decideArgs(sha, requests...), now)...)
		_ = pipe.Process(ctx, cmd)
		replies, sent, wanted = append(replies, cmd), append(sent, requests), append(wanted, results)
		times = append(times, now)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	for i, r := range replies {
		reply, at := timed(t, r.Val())
		if at != times[i] {
			t.Errorf("batch %d was decided at %d, and says it was at %d", i, times[i], at)
		}
		if diff := cmp.Diff(wanted[i], read(t, reply, sent[i]...)); diff != "" {
			t.Fatalf("batch %d: %+v differs (-go +lua):\n%s", i, sent[i], diff)
		}
	}
	if denied < batches/10 || charged < batches/10 || refunded < batches/10 {
		t.Errorf("%d denied, %d charged, %d refunded: the requests do not cover all", denied, charged, refunded)
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

// stored decodes a bucket's value by the layouts that decide.lua documents.
func stored(t *testing.T, client *redis.Client, key string) (limit.State, limit.Algorithm) {
	t.Helper()
	raw, err := client.Get(t.Context(), key).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	number := func(from, to int) (n int64) {
		for _, digit := range raw[from:to] {
			n = n<<8 | int64(digit)
		}
		return n
	}
	switch {
	case len(raw) == 15 && raw[0] < 128:
		return limit.State{At: number(1, 8), Level: number(8, 13), Rest: number(13, 15)}, limit.Algorithm(raw[0])
	case len(raw) == 22 && raw[0] > 128:
		return limit.State{At: number(1, 8), Level: number(8, 15), Rest: number(15, 22)}, limit.Algorithm(raw[0] - 128)
	default:
		t.Fatalf("%s holds %x, want 15 bytes, or 22 with the flag", key, raw)
		return limit.State{}, 0
	}
}

// decide has one request decided.
func decide(t *testing.T, client *redis.Client, charges ...limit.Charge) []limit.Result {
	t.Helper()
	return decideBatch(t, client, charges)[0]
}

func decideBatch(t *testing.T, client *redis.Client, requests ...[]limit.Charge) [][]limit.Result {
	t.Helper()
	return read(t, raw(t, client, requests...), requests...)
}

func raw(t *testing.T, client *redis.Client, requests ...[]limit.Charge) string {
	t.Helper()
	ctx := t.Context()
	sha, err := client.ScriptLoad(ctx, scripts.Decide()).Result()
	if err != nil {
		t.Fatal(err)
	}
	cmd := redis.NewStringCmd(ctx, decideArgs(sha, requests...)...)
	if err := client.Process(ctx, cmd); err != nil {
		t.Fatal(err)
	}
	reply, _ := timed(t, cmd.Val())
	return reply
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
			decide(t, client, charge("full", l, 10))
			before := snapshot(t, client)
			for _, charges := range [][]limit.Charge{
				{charge("full", l, 1)},
				{charge("full", l, 0)},
				{charge("untouched", l, 0)},
				{charge("untouched", l, 11)},
				{charge("untouched", l, 1), charge("full", l, 1)},
				{charge("full", l, 1), charge("untouched", l, 1)},
			} {
				decide(t, client, charges...)
				if diff := cmp.Diff(before, snapshot(t, client)); diff != "" {
					t.Errorf("%v wrote (-before +after):\n%s", charges, diff)
				}
			}
			decide(t, client, charge("other", l, 1))
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
	charges := []limit.Charge{charge("a", minutely, 3), charge("b", windowed, 1), charge("c", yearly, limit.MaxTokens), charge("d", minutely, 0)}
	reply := decide(t, client, charges...)
	if got, want := writes(t, client), "cmdstat_set:calls=3"; got != want {
		t.Errorf("commands that wrote: %s, want %s", got, want)
	}
	for i, c := range charges[:3] {
		s, _ := stored(t, client, c.Key)
		at, err := client.Do(t.Context(), "pexpiretime", c.Key).Int64()
		if err != nil {
			t.Fatal(err)
		}
		// The state of a fresh bucket carries the time of the decision.
		life, want := at-s.At/1000, (reply[i].ResetAfter.Microseconds()+999)/1000
		if life < want-2 || life > want+20 {
			t.Errorf("%s lives for %d ms, want its reset after rounded up, %d", c.Key, life, want)
		}
	}
}

func TestDecide_StateOfAnotherAlgorithmStartsAnew(t *testing.T) {
	client := redistest.Start(t, redistest.Config{}).Client()
	decide(t, client, charge("k", minutely, 10))
	if got := decide(t, client, charge("k", windowed, 4)); !got[0].Allowed || got[0].Remaining != 6 {
		t.Errorf("first charge after the switch: %+v; want it allowed, 6 remaining", got[0])
	}
	if _, algorithm := stored(t, client, "k"); algorithm != limit.SlidingWindow {
		t.Errorf("stored state is of %v", algorithm)
	}
	client.Set(t.Context(), "k", "rubbish", 0)
	if got := decide(t, client, charge("k", windowed, 4)); !got[0].Allowed || got[0].Remaining != 6 {
		t.Errorf("first charge over rubbish: %+v; want it allowed, 6 remaining", got[0])
	}
}

// Usual numbers make a small bucket, and the widest ones that are still small come back as they were.
func TestDecide_UsualNumbersTakeFifteenBytes(t *testing.T) {
	client := redistest.Start(t, redistest.Config{}).Client()
	second := limit.Rate{Micro: limit.Micro, Period: limit.Micro}
	for name, tt := range map[string]struct {
		limit limit.Limit
		cost  int64
		size  int64
	}{
		"usual bucket":         {minutely, 1, 15},
		"usual window":         {windowed, 1, 15},
		"fullest small bucket": {limit.NewTokenBucket(1<<40, second), 1, 15},
		"a microtoken more":    {limit.NewTokenBucket(1<<40+limit.Micro, second), 1, 22},
		"the widest of all":    {yearly, 1, 22},
	} {
		t.Run(name, func(t *testing.T) {
			client.FlushAll(t.Context())
			decide(t, client, charge("k", tt.limit, tt.cost))
			if got := client.StrLen(t.Context(), "k").Val(); got != tt.size {
				t.Errorf("the bucket takes %d bytes, want %d", got, tt.size)
			}
			if s, _ := stored(t, client, "k"); tt.limit.Algorithm == limit.TokenBucket && s.Level != tt.limit.Capacity-limit.Micro {
				t.Errorf("level is %d, want %d", s.Level, tt.limit.Capacity-limit.Micro)
			}
		})
	}
}

func TestDecide_HugeNumbersSurviveStorage(t *testing.T) {
	client := redistest.Start(t, redistest.Config{}).Client()
	reply := decide(t, client, charge("k", yearly, 1))
	s, _ := stored(t, client, "k")
	if want := int64(limit.MaxTokens-1) * limit.Micro; s.Level != want {
		t.Errorf("level is %d, want %d", s.Level, want)
	}
	if got := reply[0]; got.Remaining != limit.MaxTokens-1 || got.ResetAfter != limit.MaxPeriod*time.Microsecond {
		t.Errorf("charged: %+v, want %d remaining, full again after %d µs", got, limit.MaxTokens-1, int64(limit.MaxPeriod))
	}
	reply = decide(t, client, charge("k", yearly, limit.MaxTokens-1))
	// A billion tokens at one a year: the reset saturates, and still fits a lifetime.
	if want := (limit.Result{Allowed: true, ResetAfter: limit.Forever}); reply[0] != want {
		t.Errorf("emptied: %+v, want %+v", reply[0], want)
	}
}

// A bucket that many requests of a batch charge is read once and written once, and each sees what the ones before it
// left.
func TestDecide_ABatchReadsAndWritesABucketOnce(t *testing.T) {
	client := redistest.Start(t, redistest.Config{}).Client()
	batch := make([][]limit.Charge, 12)
	for i := range batch {
		batch[i] = []limit.Charge{charge("hot", minutely, 1)}
	}
	for i, got := range decideBatch(t, client, batch...) {
		if want := i < 10; got[0].Allowed != want || got[0].Remaining != max(0, int64(9-i)) {
			t.Errorf("request %d: %+v", i, got[0])
		}
	}
	if got, want := writes(t, client), "cmdstat_set:calls=1"; got != want {
		t.Errorf("commands that wrote: %s, want %s", got, want)
	}
	if s, _ := stored(t, client, "hot"); s.Level != 0 {
		t.Errorf("level is %d, want 0", s.Level)
	}
}

// A request that is denied leaves no trace for the next one of its batch.
func TestDecide_ADeniedRequestIsInvisibleToTheNext(t *testing.T) {
	client := redistest.Start(t, redistest.Config{}).Client()
	got := decideBatch(t, client,
		[]limit.Charge{charge("a", minutely, 4), charge("b", minutely, 11)},
		[]limit.Charge{charge("a", minutely, 10)},
	)
	if got[0][1].RetryAfter != limit.Never || !got[1][0].Allowed {
		t.Errorf("results %+v, want the first denied for ever and the second allowed", got)
	}
}

// A key that holds something else fails its own request, and charges nothing for it; its neighbours are decided.
func TestDecide_AnUnreadableKeyFailsOnlyItsOwnRequest(t *testing.T) {
	client := redistest.Start(t, redistest.Config{}).Client()
	client.LPush(t.Context(), "list", "x")
	batch := [][]limit.Charge{
		{charge("a", minutely, 1)},
		{charge("b", minutely, 1), charge("list", minutely, 1)},
		{charge("list", minutely, 0)},
		{charge("a", minutely, 1)},
	}
	reply, want := raw(t, client, batch...), []scripts.Reading{
		scripts.Decided, scripts.Unreadable, scripts.Unreadable, scripts.Decided,
	}
	for i, charges := range batch {
		var got scripts.Reading
		if reply, got = scripts.ReadResults(reply, make([]limit.Result, len(charges))); got != want[i] {
			t.Errorf("request %d reads as %v, want %v", i, got, want[i])
		}
	}
	if n := client.Exists(t.Context(), "b").Val(); n != 0 {
		t.Error("a request that could not be decided was charged")
	}
	if s, _ := stored(t, client, "a"); s.Level != 8*limit.Micro {
		t.Errorf("the neighbours left %d microtokens, want 8 tokens", s.Level)
	}
}

func TestReadResults_RefusesWhatTheScriptNeverSays(t *testing.T) {
	good := raw(t, redistest.Start(t, redistest.Config{}).Client(), []limit.Charge{charge("k", minutely, 1)})
	for name, reply := range map[string]string{
		"nothing":                "",
		"cut short":              good[:len(good)-1],
		"an unknown code":        "\x03" + good[1:],
		"a wait beyond for ever": good[:8] + "\xff" + good[9:],
		"a reset beyond that":    good[:15] + "\xff" + good[16:],
	} {
		if _, got := scripts.ReadResults(reply, make([]limit.Result, 1)); got != scripts.Malformed {
			t.Errorf("%s reads as %v, want malformed", name, got)
		}
	}
	if rest, got := scripts.ReadResults(good+"x", make([]limit.Result, 1)); got != scripts.Decided || rest != "x" {
		t.Errorf("a good reply reads as %v, followed by %q", got, rest)
	}
}

func TestReadTime_NeedsSevenBytes(t *testing.T) {
	if _, _, ok := scripts.ReadTime("123456"); ok {
		t.Error("six bytes hold a time")
	}
	if rest, at, ok := scripts.ReadTime("\x00\x00\x00\x00\x00\x01\x02x"); !ok || at != 258 || rest != "x" {
		t.Errorf("the time is %d, %v, followed by %q", at, ok, rest)
	}
}
