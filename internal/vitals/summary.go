package vitals

import "time"

// Summary is what the masters say together: one number each, however many there are. Totals and rates are summed; of
// what limits, the worst is kept.
type Summary struct {
	// At is when they answered; zero if they never did.
	At time.Time
	// Servers is how many answered.
	Servers int
	// Server holds the sums, and for what is named here the worst: the fewest Online replicas, the largest Lag,
	// LagSeconds, Fragmentation, LastForkMicros and Saving.
	Server
	// MemoryUse is the largest share of its MaxMemory that a server uses, from 0 to 1; 0 without a limit.
	MemoryUse float64
}

// summarize leaves out who did not answer.
func summarize(answers []*Server) Summary {
	var sum Summary
	for _, s := range answers {
		if s == nil {
			continue
		}
		if sum.Servers++; sum.Servers == 1 {
			sum.Online = s.Online
		}
		sum.add(s)
		if s.MaxMemory > 0 {
			sum.MemoryUse = max(sum.MemoryUse, float64(s.UsedMemory)/float64(s.MaxMemory))
		}
	}
	return sum
}

func (s *Server) add(o *Server) {
	for _, n := range [...]struct {
		sum *int64
		one int64
	}{
		{&s.Replicas, o.Replicas},
		{&s.FullSyncs, o.FullSyncs},
		{&s.PartialSyncs, o.PartialSyncs},
		{&s.RefusedSyncs, o.RefusedSyncs},
		{&s.UsedMemory, o.UsedMemory},
		{&s.MaxMemory, o.MaxMemory},
		{&s.EvictedKeys, o.EvictedKeys},
		{&s.EvictedScripts, o.EvictedScripts},
		{&s.Clients, o.Clients},
		{&s.MaxClients, o.MaxClients},
		{&s.OpsPerSecond, o.OpsPerSecond},
		{&s.InputBytes, o.InputBytes},
		{&s.OutputBytes, o.OutputBytes},
		{&s.SlowCommands, o.SlowCommands},
	} {
		*n.sum += n.one
	}
	s.Online = min(s.Online, o.Online)
	s.Lag, s.LagSeconds = max(s.Lag, o.Lag), max(s.LagSeconds, o.LagSeconds)
	s.Fragmentation = max(s.Fragmentation, o.Fragmentation)
	s.LastForkMicros, s.Saving = max(s.LastForkMicros, o.LastForkMicros), max(s.Saving, o.Saving)
}
