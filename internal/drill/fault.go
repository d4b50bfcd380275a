package drill

import (
	"context"
	"errors"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

// Fault is one of the caller's own, for Play.
type Fault struct {
	// Name is short and fit for a file name, Title says in a sentence what is done.
	Name, Title string
	// On is the topology that it is done to.
	On Topology
	// Gated puts the network between the nodes under the fault's control.
	Gated bool
	// MinReplicas is min-replicas-to-write; 0 is that of deploy/redis, topology.None is none.
	MinReplicas int
	// Expect, Calm, Blackout and Emptied say what must come of it, as in a journal.Plan.
	Expect                  journal.Expectation
	Calm, Blackout, Emptied bool
	// SplitBrain is how long the old master may go on admitting what is then lost, as in a journal.Plan.
	SplitBrain time.Duration
	// Play breaks and mends, and records both by Scene.Do. It returns an error only if it could not do so.
	Play func(context.Context, *Scene) error
}

// Validate returns all faults at once.
func (f Fault) Validate() error {
	var errs []error
	if f.Name == "" || f.Play == nil {
		errs = append(errs, errors.New("drill: a fault needs a name, and something to play"))
	}
	if f.On < Standalone || f.On > Cluster {
		errs = append(errs, errors.New("drill: a fault needs a topology"))
	}
	return errors.Join(errs...)
}

// scenario is the fault as a stage takes it.
func (f Fault) scenario() scenario {
	return scenario{
		category: f.On.category(), variant: f.Name, title: f.Title, topology: f.On, gated: f.Gated, expect: f.Expect,
		minReplicas: f.MinReplicas,
		adapt: func(p *journal.Plan, _ Config) {
			p.Calm, p.Blackout, p.Emptied, p.SplitBrain = f.Calm, f.Blackout, f.Emptied, f.SplitBrain
		},
		play: func(ctx context.Context, st *stage) error { return f.Play(ctx, &Scene{st}) },
	}
}

// Play is Run with a fault of the caller's own; Category and Variant of cfg have no effect. It returns the journal,
// too, for whoever wants to look at single answers.
func Play(ctx context.Context, cfg Config, f Fault) (*journal.Journal, *journal.Report, error) {
	cfg = cfg.WithDefaults()
	cfg.Category, cfg.Variant = f.On.category(), f.Name
	if err := errors.Join(f.Validate(), cfg.validateFigures()); err != nil {
		return nil, nil, err
	}
	return run(ctx, cfg, f.scenario())
}
