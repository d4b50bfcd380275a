package scripts

import (
	"time"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

// Sizes of the records that decide.lua takes and gives, in bytes.
const (
	timeSize   = 7
	resultSize = 1 + 3*7
)

// Flags of a charge, beside its algorithm.
const (
	ask    = 64
	refund = 128
)

// Codes of a result.
const (
	denied = iota
	admitted
	unreadable
)

// Reading says what ReadResults made of a part of the reply.
type Reading uint8

// The readings.
const (
	// Decided: the results are what the script decided.
	Decided Reading = 1 + iota
	// Unreadable: a key of this request holds something that is no bucket; nothing was charged.
	Unreadable
	// Malformed: this is no reply of the script.
	Malformed
)

// AppendRequest appends the charges of one request, at most 255, to the argument of the script. Their keys go to KEYS
// in the same order. Either none of them gives back (has a negative cost), or all do.
func AppendRequest(packed []byte, charges []limit.Charge) []byte {
	packed = append(packed, byte(len(charges)))
	for i := range charges {
		packed = appendCharge(packed, &charges[i], 0)
	}
	return packed
}

// AppendQuestion is AppendRequest for charges that are decided and not made.
func AppendQuestion(packed []byte, charges []limit.Charge) []byte {
	packed = append(packed, byte(len(charges)))
	for i := range charges {
		packed = appendCharge(packed, &charges[i], ask)
	}
	return packed
}

func appendCharge(packed []byte, c *limit.Charge, flag byte) []byte {
	cost := c.Cost
	if cost < 0 {
		cost, flag = -cost, refund
	}
	packed = append(packed, byte(c.Limit.Algorithm)|flag)
	packed = appendNumber(packed, c.Limit.Capacity)
	packed = appendNumber(packed, c.Limit.Refill)
	packed = appendNumber(packed, c.Limit.Period)
	packed = appendNumber(packed, cost)
	if flag == refund {
		packed = appendNumber(packed, c.At)
	}
	return packed
}

// ReadTime reads when the script decided, in microseconds since the epoch by the server's clock, and returns what
// follows it; false if this is no reply of the script.
func ReadTime(reply string) (rest string, at int64, ok bool) {
	if len(reply) < timeSize {
		return "", 0, false
	}
	return reply[timeSize:], readNumber(reply), true
}

// ReadResults reads the results of the next request from the script's reply, and returns what follows it.
func ReadResults(reply string, results []limit.Result) (rest string, reading Reading) {
	if len(reply) < resultSize*len(results) {
		return "", Malformed
	}
	reading = Decided
	for i := range results {
		code := reply[0]
		remaining, retry, reset := readNumber(reply[1:]), readNumber(reply[8:]), readNumber(reply[15:])
		reply = reply[resultSize:]
		switch {
		case code > unreadable || retry > int64(forever)+1 || reset > int64(forever):
			return "", Malformed
		case code == unreadable:
			reading = Unreadable
		}
		results[i] = limit.Result{Allowed: code == admitted, Remaining: remaining, ResetAfter: micros(reset)}
		if results[i].RetryAfter = micros(retry - 1); retry == 0 {
			results[i].RetryAfter = limit.Never
		}
	}
	return reply, reading
}

const forever = limit.Forever / time.Microsecond

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// appendNumber appends seven bytes, big endian: numbers of the script stay below 2^56.
func appendNumber(b []byte, n int64) []byte {
	return append(b, byte(n>>48), byte(n>>40), byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func readNumber(s string) int64 {
	return int64(s[0])<<48 | int64(s[1])<<40 | int64(s[2])<<32 | int64(s[3])<<24 |
		int64(s[4])<<16 | int64(s[5])<<8 | int64(s[6])
}
