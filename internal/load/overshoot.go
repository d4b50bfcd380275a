package load

// Overshoot compares what the service admitted with what the stated limit allows, key by key, over the whole run: from
// the first request, warm-up included, to the last that was admitted. Only a load that asks for more than the limit
// says something.
type Overshoot struct {
	LimitPerSecond float64 `json:"limit_hits_per_second"`
	LimitBurst     float64 `json:"limit_burst_hits"`
	// Seconds is the time in which the limit allows Burst + PerSecond x Seconds hits for each key.
	Seconds float64 `json:"seconds"`
	// Keys is the number of keys for which something was admitted; what follows is about them.
	Keys int `json:"keys"`
	// Admitted is the number of hits that were admitted, Allowed what the limit allows.
	Admitted int64   `json:"admitted_hits"`
	Allowed  float64 `json:"allowed_hits"`
	// Excess is the sum of what was admitted above the limit of each key; keys that stay below make up for nothing.
	Excess float64 `json:"excess_hits"`
	// KeysOver is the number of keys with an excess.
	KeysOver int `json:"keys_over"`
	// WorstKey admitted the most hits: WorstAdmitted.
	WorstKey      int   `json:"worst_key"`
	WorstAdmitted int64 `json:"worst_key_admitted_hits"`
}

// overshoot sums up the keys for a run of the given length.
func (r *runner) overshoot(seconds float64) *Overshoot {
	if r.cfg.Limit == nil {
		return nil
	}
	o := &Overshoot{LimitPerSecond: r.cfg.Limit.PerSecond, LimitBurst: r.cfg.Limit.Burst, Seconds: seconds}
	allowed := r.cfg.Limit.allows(seconds)
	for key := range r.admitted {
		hits := r.admitted[key].Load()
		if hits == 0 {
			continue
		}
		o.Keys++
		o.Admitted += hits
		o.Allowed += allowed
		if hits > o.WorstAdmitted {
			o.WorstKey, o.WorstAdmitted = key, hits
		}
		if excess := float64(hits) - allowed; excess > 0 {
			o.KeysOver++
			o.Excess += excess
		}
	}
	return o
}
