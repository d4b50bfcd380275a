package policy

import (
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

// The readers of this file turn the fields of a policy into what it enforces. They return zero for what is faulty.

// limit reads the one algorithm of a policy. Where there are two, the faults of both are found.
func (s section) limit() limit.Limit {
	var limits [2]limit.Limit
	if n := s.values["token_bucket"]; n != nil {
		limits[0] = s.w.tokenBucket(n)
	}
	if n := s.values["sliding_window"]; n != nil {
		limits[1] = s.w.slidingWindow(n)
	}
	switch s.choose("token_bucket", "sliding_window", "a policy has one algorithm, remove one") {
	case "token_bucket":
		return limits[0]
	case "sliding_window":
		return limits[1]
	}
	if !s.has("token_bucket") && !s.has("sliding_window") {
		s.require("token_bucket", "or sliding_window, as the limit to enforce")
	}
	return limit.Limit{}
}

// tokenBucket reads a rate and a capacity. Without a capacity the bucket holds what the rate gives in one second,
// rounded up to a whole token: "10/s" admits ten at once, "3/min" one.
func (w *walker) tokenBucket(n *yaml.Node) limit.Limit {
	s, ok := w.section(n, "token_bucket", tokenBucketFields...)
	if !ok {
		return limit.Limit{}
	}
	const same = "they are two spellings of one field, keep one"
	if !s.has("rate") && !s.has("refill_rate_micro_per_sec") {
		s.require("rate", "like 10/s, or refill_rate_micro_per_sec")
	}
	rate, ok := s.rate(s.choose("rate", "refill_rate_micro_per_sec", same))
	switch s.choose("burst", "capacity_micro", same) {
	case "burst":
		tokens, given := s.integer("burst", 1, limit.MaxTokens)
		return bucket(tokens*limit.Micro, rate, given && ok)
	case "capacity_micro":
		micro, given := s.integer("capacity_micro", limit.Micro, limit.MaxTokens*limit.Micro)
		return bucket(micro, rate, given && ok)
	default:
		return bucket(oneSecond(rate)*limit.Micro, rate, ok)
	}
}

func bucket(capacity int64, rate limit.Rate, ok bool) limit.Limit {
	if !ok {
		return limit.Limit{}
	}
	return limit.NewTokenBucket(capacity, rate)
}

// oneSecond is the number of tokens that rate gives in a second, rounded up. Microtokens per microsecond are tokens
// per second.
func oneSecond(rate limit.Rate) int64 {
	if rate.Period == 0 {
		return 0
	}
	return max(1, (rate.Micro+rate.Period-1)/rate.Period)
}

// rate reads a rate from the field key, whose name tells its form; no name, no rate.
func (s section) rate(key string) (rate limit.Rate, ok bool) {
	switch key {
	case "":
		return limit.Rate{}, false
	case "refill_rate_micro_per_sec", "fallback_rate_per_process_micro":
		micro, ok := s.integer(key, 1, limit.MaxRate*limit.Micro)
		return limit.Rate{Micro: micro, Period: limit.Micro}, ok
	}
	text, ok := s.quantity(key, errRate)
	if !ok {
		return limit.Rate{}, false
	}
	rate, err := parseRate(text)
	if err != nil {
		s.w.fault(s.values[key], "%s is %s: %v", key, quote(text), err)
	}
	return rate, err == nil
}

// quantity reads a text that has a unit; want tells what a number alone, or anything else, should have been.
func (s section) quantity(key string, want error) (string, bool) {
	n := s.values[key]
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		s.w.fault(n, "%s is %s: %v", key, describe(n), want)
		return "", false
	}
	return n.Value, true
}

// slidingWindow reads a number of tokens and a window.
func (w *walker) slidingWindow(n *yaml.Node) limit.Limit {
	s, ok := w.section(n, "sliding_window", slidingWindowFields...)
	if !ok {
		return limit.Limit{}
	}
	s.require("limit", "the number of tokens that a window admits")
	if !s.has("window") && !s.has("window_size_micro") {
		s.require("window", "like 60s, or window_size_micro")
	}
	tokens, ok := s.integer("limit", 1, limit.MaxTokens)
	key := s.choose("window", "window_size_micro", "they are two spellings of one field, keep one")
	window, given := s.window(key)
	if !ok || !given {
		return limit.Limit{}
	}
	return limit.NewSlidingWindow(tokens, time.Duration(window)*time.Microsecond)
}

// window reads a number of microseconds from the field key, whose name tells its form; no name, no window.
func (s section) window(key string) (micros int64, ok bool) {
	switch key {
	case "":
		return 0, false
	case "window_size_micro":
		return s.integer(key, 1, limit.MaxPeriod)
	}
	text, ok := s.quantity(key, errDuration)
	if !ok {
		return 0, false
	}
	micros, err := parseMicroseconds(text)
	if err != nil {
		s.w.fault(s.values[key], "%s is %s: %v", key, quote(text), err)
	}
	return micros, err == nil
}

// failMode reads what becomes of requests while the store is away. The mode has no default: it is a decision about
// the product, which nobody else can take.
func (s section) failMode() (mode limit.FailMode, fallback limit.Rate) {
	const human, micro = "fallback_rate_per_process", "fallback_rate_per_process_micro"
	s.require("fail_mode", "fail_open or fail_closed, what becomes of requests while the store is away")
	key := s.choose(human, micro, "they are two spellings of one field, keep one")
	fallback, _ = s.rate(key)
	text, ok := s.text("fail_mode")
	if !ok {
		return 0, fallback
	}
	switch text {
	case limit.FailOpen.String():
		mode = limit.FailOpen
		if !s.has(human) && !s.has(micro) {
			s.w.fault(s.values["fail_mode"], "fail_open needs %s, "+
				"the rate that each process admits meanwhile, like 5/s", human)
		}
	case limit.FailClosed.String():
		mode = limit.FailClosed
		if key != "" {
			s.w.fault(s.keys[key], "%s contradicts fail_closed, which admits nothing: remove one of them", key)
		}
	default:
		modes := []string{limit.FailOpen.String(), limit.FailClosed.String()}
		s.w.fault(s.values["fail_mode"], "fail_mode is %s: %s", quote(text), suggest(text, modes))
	}
	return mode, fallback
}

// costs reads the bounds of what one request is charged. By default a request costs at least 1, so that a caller who
// can influence hits_addend cannot ask for free, and at most what the bucket can ever hold.
func (s section) costs(l limit.Limit) (low, high int64) {
	capacity := int64(limit.MaxTokens)
	if l != (limit.Limit{}) {
		capacity = l.Tokens()
	}
	low, high = 1, capacity
	if v, ok := s.integer("min_cost", 0, limit.MaxTokens); ok {
		low = v
	}
	if v, ok := s.integer("max_cost", 1, limit.MaxTokens); ok {
		high = v
	}
	if high > capacity {
		s.w.fault(s.values["max_cost"], "max_cost is %d, but the limit never admits more than %d", high, capacity)
		return low, capacity
	}
	switch {
	case low <= high:
	case high < capacity:
		s.w.fault(s.values["min_cost"], "min_cost is %d, above max_cost, which is %d", low, high)
	default:
		s.w.fault(s.values["min_cost"], "min_cost is %d, but the limit never admits more than %d", low, high)
	}
	return low, high
}
