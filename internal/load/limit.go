package load

// Limit is what the service is supposed to enforce on every key: at most Burst + PerSecond x seconds.
type Limit struct {
	// PerSecond is the number of hits that a key regains each second.
	PerSecond float64
	// Burst is the number of hits that an unused key admits at once.
	Burst float64
}

// allows is the most hits that one key may admit in a run of the given length.
func (l Limit) allows(seconds float64) float64 { return l.Burst + l.PerSecond*seconds }
