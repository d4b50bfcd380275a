package main

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/honestlimit/ratelimit/pkg/limit"
	"github.com/honestlimit/ratelimit/pkg/policy"
)

// describeLimit says what l enforces, as a policy file would.
func describeLimit(l limit.Limit) string {
	if l.Algorithm == limit.SlidingWindow {
		return fmt.Sprintf("%d per %s", l.Capacity, describePeriod(l.Period))
	}
	return fmt.Sprintf("%s, burst %s", describeRate(limit.Rate{Micro: l.Refill, Period: l.Period}),
		describeTokens(l.Capacity))
}

// ratePeriods are the units that a rate may be told in, shortest first.
var ratePeriods = [...]struct {
	name    string
	seconds int64
}{{"s", 1}, {"min", 60}, {"h", 3600}, {"d", 24 * 3600}, {"y", 365 * 24 * 3600}}

// describeRate says a rate in the shortest unit in which it is a whole number of tokens, and otherwise as it is.
func describeRate(r limit.Rate) string {
	for _, u := range ratePeriods {
		// A microtoken per microsecond is a token per second. The product may exceed 64 bits.
		perPeriod := new(big.Int).Mul(big.NewInt(r.Micro), big.NewInt(u.seconds))
		tokens, rest := perPeriod.QuoRem(perPeriod, big.NewInt(r.Period), new(big.Int))
		if rest.Sign() == 0 {
			return fmt.Sprintf("%d/%s", tokens, u.name)
		}
	}
	return fmt.Sprintf("%s/%s", describeTokens(r.Micro), describePeriod(r.Period))
}

// describeTokens says a number of microtokens in tokens.
func describeTokens(micro int64) string {
	whole, rest := micro/limit.Micro, micro%limit.Micro
	if rest == 0 {
		return strconv.FormatInt(whole, 10)
	}
	return fmt.Sprintf("%d.%s", whole, strings.TrimRight(fmt.Sprintf("%06d", rest), "0"))
}

// describePeriod says a number of microseconds in the longest unit that is exact.
func describePeriod(micros int64) string {
	for _, u := range [...]struct {
		name   string
		micros int64
	}{{"d", 24 * 3600 * limit.Micro}, {"h", 3600 * limit.Micro}, {"min", 60 * limit.Micro}, {"s", limit.Micro}} {
		if micros%u.micros == 0 {
			return strconv.FormatInt(micros/u.micros, 10) + u.name
		}
	}
	return (time.Duration(micros) * time.Microsecond).String()
}

// describeFailMode says what becomes of the endpoint's requests while the store is away.
func describeFailMode(e limit.Endpoint) string {
	if e.FailMode == limit.FailOpen {
		return fmt.Sprintf("%v at %s per process", e.FailMode, describeRate(e.Fallback))
	}
	return e.FailMode.String()
}

// describeCost says what one request is charged.
func describeCost(p *policy.Policy) string { return fmt.Sprintf("%d to %d", p.MinCost, p.MaxCost) }
