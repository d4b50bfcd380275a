package preflight

import "fmt"

// Status is what a check came to. A larger one is worse.
type Status uint8

// The statuses.
const (
	// Pass: as it should be.
	Pass Status = 1 + iota
	// Skip: it could not be found out, or there is nothing to find out.
	Skip
	// Warn: it works, and will hurt some day.
	Warn
	// Fail: the service will not do, now or at the next failover, what it promises.
	Fail
)

// String is the word that reports use.
func (s Status) String() string {
	switch s {
	case Pass:
		return "pass"
	case Skip:
		return "skip"
	case Warn:
		return "warn"
	case Fail:
		return "fail"
	default:
		return fmt.Sprintf("status(%d)", uint8(s))
	}
}

// MarshalText makes JSON show the word.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
