package load

import "time"

// Schema is the version of the JSON form of a Report. Fields are added under the same number, never renamed.
const Schema = 1

// Report is what came back. The JSON names carry the units, and are stable.
type Report struct {
	Schema int    `json:"schema"`
	Target string `json:"target"`
	Domain string `json:"domain"`
	// Loop is closed or open.
	Loop        string `json:"loop"`
	Connections int    `json:"connections"`
	Streams     int    `json:"streams_per_connection"`
	Keys        int    `json:"keys"`
	Dist        string `json:"dist"`
	Seed        uint64 `json:"seed"`

	// OfferedPerSecond is the rate of an open loop that was asked for.
	OfferedPerSecond float64 `json:"offered_requests_per_second"`
	// NotOffered is the number of requests that an open loop could not send: they were due while the backlog was full.
	NotOffered int64 `json:"not_offered_requests"`
	// SendDelayP99 and SendDelayMax are how much later than due requests of an open loop were sent. Latency includes it.
	SendDelayP99 float64 `json:"send_delay_p99_seconds"`
	SendDelayMax float64 `json:"send_delay_max_seconds"`

	// All is the whole run but the warm-up.
	All Phase `json:"all"`
	// ConnectionsOpened counts the sockets opened over the run, ConnectionsFailed the attempts that came to nothing.
	ConnectionsOpened int64 `json:"connections_opened"`
	ConnectionsFailed int64 `json:"connections_failed"`
	// CPU is about the processes of Config.PIDs. It is empty where the system has no /proc.
	CPU []CPU `json:"cpu"`
	// Generator is the process that sent the load. If it uses all the processor time that is left, the figures are
	// about it and not about the service. Nil where the system has no /proc.
	Generator *CPU `json:"generator_cpu"`
	// Fault is nil if none began.
	Fault *FaultReport `json:"fault"`
	// Overshoot is nil if Config states no limit.
	Overshoot *Overshoot `json:"overshoot"`
}

// report sums up a run that is over.
func (r *runner) report() Report {
	out := Report{
		Schema: Schema, Target: r.cfg.Target, Domain: r.cfg.Domain, Loop: "closed",
		Connections: r.cfg.Connections, Streams: r.cfg.Streams,
		Keys: r.cfg.Keys, Dist: r.cfg.Dist.String(), Seed: r.cfg.Seed,
		OfferedPerSecond: r.cfg.Rate, NotOffered: r.notOffered,
		ConnectionsOpened: r.target.opened.Load(), ConnectionsFailed: r.target.refused.Load(),
	}
	if r.cfg.Rate > 0 {
		out.Loop = "open"
		out.SendDelayP99, out.SendDelayMax = r.sendDelay()
	}
	tallies, sum := r.merged()
	lastAnswer, lastAdmitted := r.lastAnswers()
	end := r.measuredEnd(lastAnswer)
	out.All = newPhase("all", &sum, max(0, end-r.cfg.Warmup))
	out.CPU, out.Generator = r.cpu(out.All.Requests)
	out.Fault = r.faultReport(tallies, end)
	out.Overshoot = r.overshoot(seconds(lastAdmitted))
	return out
}

// merged adds up the shards, by phase and altogether.
func (r *runner) merged() (byPhase [phases]tally, sum tally) {
	sum = newTally()
	for p := range byPhase {
		byPhase[p] = newTally()
		for _, s := range r.shards {
			byPhase[p].merge(&s.tallies[p])
		}
		sum.merge(&byPhase[p])
	}
	return byPhase, sum
}

// sendDelay is the 99th percentile and the longest, in seconds.
func (r *runner) sendDelay() (p99, longest float64) {
	all := newHistogram()
	for _, s := range r.shards {
		all.Merge(s.delays)
	}
	return seconds(time.Duration(all.ValueAtPercentile(99))), seconds(time.Duration(all.Max()))
}

// lastAnswers is when the last request was answered, and when the last was admitted.
func (r *runner) lastAnswers() (answered, admitted time.Duration) {
	for _, s := range r.shards {
		answered, admitted = max(answered, s.lastAnswer), max(admitted, s.lastAdmitted)
	}
	return answered, admitted
}

// measuredEnd is when the run was over for the figures by second: when its time was up or it was stopped, else with
// the last answer.
func (r *runner) measuredEnd(lastAnswer time.Duration) time.Duration {
	if r.cfg.Requests > 0 && r.left.Load() <= 0 {
		return max(r.endedAt, lastAnswer)
	}
	return r.endedAt
}

// cpu tells the processes that were asked for from this one, which is last.
func (r *runner) cpu(requests int64) ([]CPU, *CPU) {
	list := r.meter.list(requests)
	asked := len(r.cfg.PIDs)
	if len(list) == asked {
		return list, nil
	}
	return list[:asked], &list[asked]
}
