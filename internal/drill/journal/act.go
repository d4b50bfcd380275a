package journal

import (
	"fmt"
	"time"
)

// Act is something that the drill did.
type Act struct {
	At time.Duration `json:"-"`
	// Seconds is At, for JSON.
	Seconds float64 `json:"at_seconds"`
	Kind    ActKind `json:"kind"`
	// Text says what.
	Text string `json:"text"`
}

// ActKind is what an act was for.
type ActKind uint8

// The kinds of acts.
const (
	// Prepared: something that the fault needs beforehand.
	Prepared ActKind = 1 + iota
	// Injected: the fault, T0.
	Injected
	// Worsened: a further step of the fault.
	Worsened
	// Mended: what was broken is whole again, or on its way.
	Mended
)

// String names the kind.
func (k ActKind) String() string {
	switch k {
	case Prepared:
		return "prepared"
	case Injected:
		return "injected"
	case Worsened:
		return "worsened"
	case Mended:
		return "mended"
	default:
		return fmt.Sprintf("act(%d)", uint8(k))
	}
}

// MarshalText is String, for JSON.
func (k ActKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
