package journal

import "time"

// Schema is the version of the JSON form of a Report. Fields are added under the same number, never renamed.
const Schema = 1

// Report is what a run proved. The JSON names carry the units, and are stable.
type Report struct {
	Schema   int       `json:"schema"`
	Category Category  `json:"category"`
	Variant  string    `json:"variant,omitempty"`
	Title    string    `json:"title"`
	Topology string    `json:"topology"`
	Started  time.Time `json:"started"`
	// Seconds is how long the run was.
	Seconds float64 `json:"seconds"`
	// Passed is whether all Checks did.
	Passed bool `json:"passed"`

	Marks Marks `json:"marks"`
	// Recovery is T5-T0: for how long the business was without its store.
	Recovery Moment `json:"recovery_seconds"`
	// AfterSwitch is T5 counted from +switch-master: the part of it that is the service's own.
	AfterSwitch Moment `json:"after_switch_seconds"`
	// Stabilization is T6-T0: for how long the topology was not whole. The drill chose when to mend the fault.
	Stabilization Moment `json:"stabilization_seconds"`
	// AfterMending is T6 counted from when the drill had mended the fault.
	AfterMending Moment `json:"after_mending_seconds"`

	// Budget is the service's time for a decision.
	Budget float64 `json:"budget_seconds"`
	Phases []Phase `json:"phases"`
	// ByStream are the same phases of each endpoint.
	ByStream  []StreamPhases `json:"phases_by_stream"`
	Ledgers   []Ledger       `json:"over_admission"`
	Emergency []Emergency    `json:"emergency"`
	Connects  []Connects     `json:"connections"`
	// MaxInFlight is the most decisions that were seen to wait for the store at once.
	MaxInFlight int `json:"max_in_flight"`
	// Stall is the longest time for which the drill itself had to wait for a processor.
	Stall float64 `json:"longest_stall_seconds"`
	// NotOffered are requests that the generator could not send in time.
	NotOffered int64 `json:"not_offered_requests"`

	Checks  []Check  `json:"checks"`
	Streams []Stream `json:"streams"`
	Acts    []Act    `json:"acts"`
	Events  []Event  `json:"events"`
	// Masters is where the service said that the master is, Breakers the state of its circuit breaker, Quorums whether
	// any Sentinel could still order a failover.
	Masters  []Span `json:"service_master"`
	Breakers []Span `json:"service_breaker"`
	Quorums  []Span `json:"quorum"`
	// Votes are the changes of what CKQUORUM answered.
	Votes []VoteChange `json:"ckquorum"`
	Slots []Slot       `json:"timeline"`
	// Evidence is the folder with logs and states; empty if none was kept.
	Evidence string `json:"evidence,omitempty"`
}

// Analyse judges a journal; it sorts it first.
func Analyse(j *Journal) *Report {
	j.Sort()
	m := j.marks()
	r := &Report{
		Schema: Schema, Category: j.Plan.Category, Variant: j.Plan.Variant, Title: j.Plan.Title,
		Topology: j.Plan.Topology, Started: j.Started, Seconds: j.End.Seconds(),
		Marks: m, Recovery: m.Decided.Since(m.Fault), AfterSwitch: m.Decided.Since(m.Switch),
		Stabilization: m.Healthy.Since(m.Fault), AfterMending: m.Healthy.Since(m.Mended),
		Phases: j.phases(m, everybody), ByStream: j.byStream(m),
		Ledgers: j.ledgers(m), Emergency: j.emergencies(), Connects: j.connects(m),
		Budget: j.Plan.Budget.Seconds(), MaxInFlight: j.maxInFlight(), Stall: j.longestStall().Seconds(),
		NotOffered: j.NotOffered,
		Streams:    j.Streams, Acts: j.Acts, Events: j.Events, Votes: j.voteChanges(),
		Masters: j.masters(), Breakers: j.breakers(), Quorums: j.quorums(), Slots: j.slots(),
	}
	for i := range r.Acts {
		r.Acts[i].Seconds = r.Acts[i].At.Seconds()
	}
	for i := range r.Events {
		r.Events[i].Seconds = r.Events[i].At.Seconds()
	}
	r.Checks = append(j.checks(r), j.Checks...)
	r.Passed = true
	for _, c := range r.Checks {
		r.Passed = r.Passed && c.Passed
	}
	return r
}

func (j *Journal) maxInFlight() (most int) {
	for _, s := range j.Service {
		most = max(most, s.InFlight)
	}
	return most
}
