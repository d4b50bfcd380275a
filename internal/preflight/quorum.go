package preflight

// threshold is how many Sentinels must agree for a failover to happen: the quorum to call the master down, and the
// majority of all that are known, dead ones included, to lead the failover (specification, "SDOWN vs ODOWN").
func threshold(quorum, known int) int { return max(quorum, known/2+1) }

// survival is what is left of the Sentinels when one machine goes.
type survival struct {
	host string
	left int
	// withMaster is set if the master goes with it.
	withMaster bool
}

// survivals is, for each machine that runs one, how many of the living Sentinels outlive it.
func survivals(awake []*watcher, masterHost string) []survival {
	var all []survival
	seen := map[string]int{}
	for _, w := range awake {
		seen[w.host]++
	}
	for _, w := range awake {
		lost, first := seen[w.host]
		if !first {
			continue
		}
		delete(seen, w.host)
		all = append(all, survival{
			host: w.host, left: len(awake) - lost, withMaster: masterHost != "" && w.host == masterHost,
		})
	}
	return all
}
