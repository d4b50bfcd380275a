package scripts_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/scripts"
)

// takeLua is limit.Limit.Take around the functions of limit.lua, with everything it needs as an argument.
const takeLua = `
local a = {}
for i = 1, #ARGV do a[i] = tonumber(ARGV[i]) end
local algorithm, capacity, refill, period, at, level, rest, now, cost, charged_at = unpack(a)
at, level, rest = advance(algorithm, capacity, refill, period, at, level, rest, now)
local wait = 0
if cost < 0 then
  level, rest = refund(algorithm, capacity, refill, period, at, level, rest, now, -cost, charged_at)
else
  wait = wait_for(algorithm, capacity, refill, period, at, level, rest, now, cost)
  if wait == 0 then level = spend(algorithm, level, cost) end
end
local left = remaining(algorithm, capacity, period, at, level, rest, now)
local full = reset(algorithm, capacity, refill, period, at, level, rest, now)
return {at, level, rest, min(wait, FOREVER), left, full}`

// outcome is what one step leads to, as whole numbers: times in microseconds.
type outcome struct {
	At, Level, Rest                   int64
	RetryAfter, Remaining, ResetAfter int64
}

type step struct {
	limit limit.Limit
	state limit.State
	now   int64
	cost  int64 // negative: it is given back
	at    int64 // when that was charged
}

func (s step) args() []any {
	l := s.limit
	return []any{
		uint8(l.Algorithm), l.Capacity, l.Refill, l.Period, s.state.At, s.state.Level, s.state.Rest, s.now, s.cost,
		s.at,
	}
}

func (s step) inGo() (limit.State, outcome) {
	state, r := s.take()
	retry := r.RetryAfter.Microseconds()
	if r.RetryAfter == limit.Never {
		retry = -1
	}
	return state, outcome{
		state.At, state.Level, state.Rest,
		retry, r.Remaining, r.ResetAfter.Microseconds(),
	}
}

func (s step) take() (limit.State, limit.Result) {
	if s.cost >= 0 {
		return s.limit.Take(s.state, s.now, s.cost)
	}
	state := s.limit.Refund(s.limit.Advance(s.state, s.now), s.now, -s.cost, s.at)
	return state, s.limit.Report(state, s.now, 0)
}

// TestLimit_LuaAgreesWithGo walks buckets through random limits, costs and clocks in both languages. The walk follows
// the states that Go computes; as long as both agree that is the walk of either.
func TestLimit_LuaAgreesWithGo(t *testing.T) {
	const walks, stepsEach = 1000, 50
	random := seeded(t)
	client := redistest.Start(t, redistest.Config{}).Client()
	seen := map[string]int{}
	for range walks {
		var steps []step
		var want []outcome
		s := step{limit: randomLimit(random), now: 1 + random.Int64N(1<<51)}
		for range stepsEach {
			s.now = randomClock(random, s.now, s.limit)
			s.cost = randomCost(random, s.limit)
			if s.cost > 0 && random.IntN(4) == 0 {
				s.cost, s.at = -s.cost, s.now-magnitude(random, 0, 2*s.limit.Period)+random.Int64N(3)-1
			}
			if random.IntN(25) == 0 {
				s.limit = sameAlgorithm(random, s.limit.Algorithm)
			}
			state, out := s.inGo()
			steps, want = append(steps, s), append(want, out)
			count(seen, s, out)
			s.state = state
		}
		for i, got := range inLua(t, client, steps) {
			if diff := cmp.Diff(want[i], got); diff != "" {
				t.Fatalf("step %d, %+v: Lua differs from Go (-go +lua):\n%s", i, steps[i], diff)
			}
		}
	}
	for _, kind := range []string{
		"admitted", "denied", "never", "asked", "saturated", "stepped back", "changed limit", "previous window",
		"fraction kept", "given back", "partly given", "nothing to give",
	} {
		if seen[kind] < 20 {
			t.Errorf("the walks met %q %d times: they do not cover it (%v)", kind, seen[kind], seen)
		}
	}
}

func inLua(t *testing.T, client *redis.Client, steps []step) []outcome {
	t.Helper()
	ctx := t.Context()
	sha, err := client.ScriptLoad(ctx, scripts.Limit+takeLua).Result()
	if err != nil {
		t.Fatal(err)
	}
	pipe := client.Pipeline()
	replies := make([]*redis.IntSliceCmd, len(steps))
	for i, s := range steps {
		replies[i] = redis.NewIntSliceCmd(ctx, append([]any{"evalsha", sha, 0}, s.args()...)...)
		_ = pipe.Process(ctx, replies[i])
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	out := make([]outcome, len(steps))
	for i, r := range replies {
		v := r.Val()
		out[i] = outcome{v[0], v[1], v[2], v[3], v[4], v[5]}
	}
	return out
}

// refunded tells whether the bucket of s got anything back.
func refunded(s step, out outcome) bool {
	before := s.limit.Advance(s.state, s.now)
	return before.Level != out.Level || before.Rest != out.Rest
}

// count notes what a step exercised, so that a walk that never reaches a case is noticed.
func count(seen map[string]int, s step, out outcome) {
	for kind, met := range map[string]bool{
		"admitted":        out.RetryAfter == 0 && s.cost > 0,
		"given back":      s.cost < 0 && refunded(s, out) && out.Rest == 0,
		"partly given":    s.cost < 0 && refunded(s, out) && out.Rest != 0,
		"nothing to give": s.cost < 0 && !refunded(s, out),
		"asked":           s.cost == 0,
		"denied":          out.RetryAfter > 0,
		"never":           out.RetryAfter < 0,
		"saturated":       out.ResetAfter == 1<<52,
		"stepped back":    s.now < s.state.At,
		"changed limit":   s.limit.Algorithm == limit.TokenBucket && s.state.Level > s.limit.Capacity,
		"previous window": s.limit.Algorithm == limit.SlidingWindow && out.Rest > 0,
		"fraction kept":   s.limit.Algorithm == limit.TokenBucket && out.Rest > 0,
	} {
		if met {
			seen[kind]++
		}
	}
}

// seeded returns a generator whose seed a failing test shows, and which RATELIMIT_TEST_SEED sets.
func seeded(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("RATELIMIT_TEST_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("RATELIMIT_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// magnitude returns a number from low to high whose size, not value, is uniform: small ones are as likely as huge.
func magnitude(random *rand.Rand, low, high int64) int64 {
	shift := random.IntN(63)
	return low + random.Int64N(max(1, min(high-low, 1<<shift)+1))
}

func randomLimit(random *rand.Rand) limit.Limit {
	if random.IntN(2) == 0 {
		return sameAlgorithm(random, limit.TokenBucket)
	}
	return sameAlgorithm(random, limit.SlidingWindow)
}

// sameAlgorithm returns any limit that is allowed, the outermost ones more often than chance would have it.
func sameAlgorithm(random *rand.Rand, algorithm limit.Algorithm) limit.Limit {
	for {
		l := limit.Limit{Algorithm: algorithm}
		if algorithm == limit.SlidingWindow {
			l.Capacity = magnitude(random, 1, limit.MaxTokens)
			l.Period = magnitude(random, 1, limit.MaxPeriod)
		} else {
			l = limit.NewTokenBucket(magnitude(random, limit.Micro, limit.MaxTokens*limit.Micro), randomRate(random))
		}
		if random.IntN(8) == 0 {
			l.Capacity = limit.MaxTokens
			if algorithm == limit.TokenBucket {
				l.Capacity *= limit.Micro
			}
		}
		if l.Validate() == nil {
			return l
		}
	}
}

func randomRate(random *rand.Rand) limit.Rate {
	switch random.IntN(6) {
	case 0:
		return limit.Rate{Micro: limit.Micro, Period: limit.MaxPeriod} // 1 a year
	case 1:
		return limit.Rate{Micro: limit.MaxRate * limit.Micro, Period: limit.Micro} // 1,000,000 a second
	case 2:
		return limit.Rate{Micro: magnitude(random, 1, 1<<52), Period: 1 + random.Int64N(limit.MaxPeriod)}
	default:
		return limit.Rate{Micro: magnitude(random, 1, 1<<52), Period: magnitude(random, 1, limit.MaxPeriod)}
	}
}

// randomClock moves now: not at all, a little, about a period, by years, or back. It stays where a clock can be.
func randomClock(random *rand.Rand, now int64, l limit.Limit) int64 {
	switch random.IntN(10) {
	case 0:
	case 1:
		now -= magnitude(random, 1, 1<<51)
	case 2:
		now += magnitude(random, 1, 1<<50)
	case 3, 4:
		now += random.Int64N(3*l.Period + 1)
	case 5:
		now += l.Period
	default:
		now += magnitude(random, 0, l.Period)
	}
	return min(max(now, 1), 1<<51)
}

func randomCost(random *rand.Rand, l limit.Limit) int64 {
	switch random.IntN(6) {
	case 0:
		return 0
	case 1:
		return 1
	case 2:
		return min(limit.MaxTokens, l.Tokens()+random.Int64N(2)) // the last that fits, the first that never does
	case 3:
		return 1 + random.Int64N(limit.MaxTokens)
	default:
		return 1 + random.Int64N(l.Tokens())
	}
}
