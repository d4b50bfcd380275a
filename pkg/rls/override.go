package rls

import (
	"time"

	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

// override is a limit that the request itself brings, which replaces the limit of the policy that its descriptor
// matches: same bucket, same algorithm, other numbers. The zero value overrides nothing.
type override struct {
	requests int64 // tokens
	seconds  int64
}

// unitSeconds are the lengths of the units that Envoy can send. It counts a month as 30 days and a year as 365.
var unitSeconds = map[typev3.RateLimitUnit]int64{
	typev3.RateLimitUnit_SECOND: 1,
	typev3.RateLimitUnit_MINUTE: 60,
	typev3.RateLimitUnit_HOUR:   3600,
	typev3.RateLimitUnit_DAY:    86400,
	typev3.RateLimitUnit_MONTH:  30 * 86400,
	typev3.RateLimitUnit_YEAR:   365 * 86400,
}

// rawOverride is an override as it was sent.
type rawOverride struct {
	set        bool
	requests   uint32
	unit       typev3.RateLimitUnit
	multiplied bool
	multiplier uint64
}

func (o *rawOverride) parse(text string) (broken bool) {
	o.set = true
	w := wire{rest: text}
	for w.next() {
		switch w.field {
		case overrideRequests:
			o.requests = uint32(w.number)
		case overrideUnit:
			o.unit = typev3.RateLimitUnit(w.number)
		case overrideMultiplier:
			o.multiplied = true
			w.broken = parseNumber(w.text, &o.multiplier)
		}
	}
	return w.broken
}

// check returns the override of descriptor i, the zero one if none was sent.
func (o *rawOverride) check(i int) (override, error) {
	if !o.set {
		return override{}, nil
	}
	seconds, ok := unitSeconds[o.unit]
	if !ok {
		return override{}, invalid(field(i, "limit.unit"),
			"is %v, must be SECOND, MINUTE, HOUR, DAY, MONTH or YEAR", o.unit)
	}
	if o.multiplied {
		times := int64(uint32(o.multiplier))
		if most := limit.MaxPeriod / limit.Micro / seconds; times < 1 || times > most {
			return override{}, invalid(field(i, "limit.unit_multiplier"),
				"is %d, must be from 1 to %d for this unit", times, most)
		}
		seconds *= times
	}
	requests := int64(o.requests)
	if requests < 1 || requests > limit.MaxTokens {
		return override{}, invalid(field(i, "limit.requests_per_unit"),
			"is %d, must be from 1 to %d", requests, limit.MaxTokens)
	}
	return override{requests: requests, seconds: seconds}, nil
}

// over returns base with its numbers replaced. A token bucket holds the requests of one unit and regains them in one.
func (o override) over(base limit.Limit) limit.Limit {
	if base.Algorithm == limit.SlidingWindow {
		return limit.NewSlidingWindow(o.requests, time.Duration(o.seconds)*time.Second)
	}
	capacity := o.requests * limit.Micro
	return limit.NewTokenBucket(capacity, limit.Rate{Micro: capacity, Period: o.seconds * limit.Micro})
}
