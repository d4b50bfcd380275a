package load

import (
	"fmt"
	"math/rand/v2"
)

// Dist says how keys are drawn.
type Dist uint8

// The distributions.
const (
	// Hot draws key 0 nine times out of ten, else any of the others.
	Hot Dist = 1 + iota
	// Uniform draws each key as often as any other.
	Uniform
	// Zipf draws key k in proportion to (k+1)^-1.1: a few keys most of the time, and a long tail.
	Zipf
)

const (
	hotTenths    = 9
	zipfExponent = 1.1
)

// String names the distribution in lower case.
func (d Dist) String() string {
	switch d {
	case Hot:
		return "hot"
	case Uniform:
		return "uniform"
	case Zipf:
		return "zipf"
	default:
		return fmt.Sprintf("dist(%d)", uint8(d))
	}
}

func (d Dist) valid() bool { return d >= Hot && d <= Zipf }

// drawer draws keys; not safe for concurrent use.
type drawer struct {
	dist Dist
	keys int
	rng  *rand.Rand
	zipf *rand.Zipf
}

// newDrawer draws the sequence that seed and stream (the number of the worker) name.
func newDrawer(cfg Config, stream uint64) drawer {
	d := drawer{dist: cfg.Dist, keys: cfg.Keys, rng: rand.New(rand.NewPCG(cfg.Seed, stream))}
	if cfg.Dist == Zipf {
		d.zipf = rand.NewZipf(d.rng, zipfExponent, 1, uint64(cfg.Keys-1))
	}
	return d
}

func (d *drawer) next() int {
	if d.keys == 1 {
		return 0
	}
	switch d.dist {
	case Hot:
		if d.rng.IntN(10) < hotTenths {
			return 0
		}
		return 1 + d.rng.IntN(d.keys-1)
	case Uniform:
		return d.rng.IntN(d.keys)
	case Zipf:
		return int(d.zipf.Uint64())
	default:
		panic(fmt.Sprintf("load: %v passed validation", d.dist))
	}
}
