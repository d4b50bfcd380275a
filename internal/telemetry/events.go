package telemetry

import (
	"fmt"
	"runtime"

	"github.com/rs/zerolog"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/policy"
)

// Events logs what happens to the service as a whole, one line each.
type Events struct{ log zerolog.Logger }

// NewEvents returns a writer of such lines.
func NewEvents(log zerolog.Logger) *Events { return &Events{log: log} }

// Moved logs a transition of the breaker (failure.BreakerConfig.OnTransition).
func (e *Events) Moved(t failure.Transition) {
	line := e.log.Info()
	if t.To == failure.Open {
		line = e.log.Warn().
			Stringer("cause", t.Cause).
			Stringer("quarantine", t.Quarantine).
			Stringer("earliest_proof", t.EarliestProof)
	}
	line.Stringer("from", t.From).Stringer("to", t.To).Stringer("trigger", t.Trigger).Msg("breaker moved")
}

// MasterChanged logs that the lanes went over to another master (redisstore.Hooks.Moved).
func (e *Events) MasterChanged(from, to string) {
	e.log.Warn().Str("from", from).Str("to", to).Msg("another master decides")
}

// Reloaded logs what a load of the policy files changed (policy.SourceConfig.OnReload).
func (e *Events) Reloaded(r policy.Report) {
	for _, f := range r.Faults {
		e.log.Error().Str("fault", f.Error()).Msg("policy fault")
	}
	for _, d := range r.Domains {
		line := e.log.Info()
		if d.Outcome == policy.Kept || d.Outcome == policy.Rejected {
			line = e.log.Error()
		}
		if d.Outcome == policy.Unchanged {
			line = e.log.Debug()
		}
		line.Str("domain", d.Name).Stringer("outcome", d.Outcome).Str("version", d.Version).Msg("policies reloaded")
	}
}

// Panicked logs a recovered panic. What a handler panicked with may hold anything, so it is shown only if the
// runtime made it.
func (e *Events) Panicked(value any, stack []byte) {
	what := fmt.Sprintf("%T", value)
	if bug, ok := value.(runtime.Error); ok {
		what = bug.Error()
	}
	e.log.Error().Str("what", what).Bytes("stack", stack).Msg("recovered from a bug")
}
