package drill

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/load"
)

// offer is the load that a drill puts on the service: one open loop for each stream.
type offer struct {
	target  string
	domain  string
	streams []journal.Stream
	// descriptors are those of each stream's requests, keys how many values their placeholder stands for.
	descriptors [][][]load.Entry
	keys        []int
}

// run offers the load until stop is closed, and then waits for what was sent.
func (o *offer) run(ctx context.Context, r *recorder, stop <-chan struct{}) error {
	errs := make([]error, len(o.streams))
	var loops sync.WaitGroup
	for i := range o.streams {
		loops.Go(func() { errs[i] = o.loop(ctx, r, i, stop) })
	}
	loops.Wait()
	return errors.Join(errs...)
}

func (o *offer) loop(ctx context.Context, r *recorder, i int, stop <-chan struct{}) error {
	report, err := load.Run(ctx, load.Config{
		Target: o.target, Connections: 1, Streams: 256, Domain: o.domain, Descriptors: o.descriptors[i], Keys: o.keys[i],
		Rate: o.streams[i].PerSecond, Duration: 24 * time.Hour, Stop: stop,
		OnAnswer: func(seen load.Observation) { r.answer(i, seen) },
	})
	if err != nil {
		return fmt.Errorf("drill: the load of %s: %w", o.streams[i].Name, err)
	}
	r.write(func(j *journal.Journal) { j.NotOffered += report.NotOffered })
	return nil
}

// The answers of internal/load, as its reports name them.
const (
	answerOK        = "OK"
	answerOverLimit = "OVER_LIMIT"
	// codeDenied is the gRPC code of a 503 that carries no reason.
	codeDenied = "FailedPrecondition"
)

func (r *recorder) answer(stream int, o load.Observation) {
	a := journal.Answer{
		Stream: stream, Due: r.at(o.Due), Sent: r.at(o.Sent), At: r.at(o.Answered), Reason: o.Reason,
		Verdict: journal.Failed,
	}
	switch {
	case o.Answer == answerOK:
		a.Verdict = journal.Admitted
	case o.Answer == answerOverLimit:
		a.Verdict = journal.Denied
	case o.Reason == codeDenied:
		a.Verdict, a.Reason = journal.Denied, journal.DeniedWithoutReason
	}
	r.write(func(j *journal.Journal) { j.Answers = append(j.Answers, a) })
}
