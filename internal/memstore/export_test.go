package memstore

import "github.com/honestlimit/ratelimit/pkg/limit"

// Decide is what Submit does without a Call, which can be completed only once.
func Decide(s *Store, charges []limit.Charge, results []limit.Result) { s.decide(charges, results) }
