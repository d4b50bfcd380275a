package failure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

// DefaultBudget is the time the store has for one request (specification: 20 ms).
const DefaultBudget = 20 * time.Millisecond

// Emergency meters fail_open endpoints while the store is away.
//
// Take must admit all charges or none, must never block, and must charge nothing when it denies. If it denies,
// retryAfter is its estimate of when the same charges would be admitted, and denied the index of the charge that has to
// wait that long.
type Emergency interface {
	Take(charges []limit.Charge) (retryAfter time.Duration, denied int, ok bool)
}

// GuardConfig tunes a Guard. Zero values mean the defaults.
type GuardConfig struct {
	// Budget is the longest that the store may hold up one request. Default DefaultBudget.
	Budget time.Duration
	// Slack is the part of the budget kept for everything but waiting, so that the decision itself comes within
	// it. Default a twentieth of Budget.
	Slack time.Duration
	// Margin is how long before the caller's own deadline the decision must be ready. Default 2 ms.
	Margin time.Duration
	// MaxInFlight requests wait for the store at once; more are decided as if it had timed out. Default 16384.
	MaxInFlight int
}

// Validate reports every setting that is out of range.
func (c GuardConfig) Validate() error {
	var errs []error
	if c.Budget < 0 || c.Margin < 0 || c.MaxInFlight < 0 {
		errs = append(errs, errors.New("failure: budget, margin and in-flight cap must be > 0"))
	}
	if d := c.withDefaults(); d.Slack < 0 || d.Slack >= d.Budget {
		errs = append(errs, fmt.Errorf("failure: slack is %v, must be less than the budget of %v", d.Slack, d.Budget))
	}
	return errors.Join(errs...)
}

func (c GuardConfig) withDefaults() GuardConfig {
	c.Budget = cmp.Or(c.Budget, DefaultBudget)
	c.Slack = cmp.Or(c.Slack, c.Budget/20)
	c.Margin = cmp.Or(c.Margin, 2*time.Millisecond)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, 16384)
	return c
}

// Guard decides requests: breaker, store within the budget, decision table.
type Guard struct {
	store     Store
	breaker   *Breaker
	emergency Emergency
	cfg       GuardConfig
	inFlight  atomic.Int64
	calls     sync.Pool
}

// NewGuard returns a guard in front of store. breaker may be nil for a store that cannot fail.
func NewGuard(store Store, breaker *Breaker, emergency Emergency, cfg GuardConfig) (*Guard, error) {
	if store == nil || emergency == nil {
		return nil, errors.New("failure: a guard needs a store and an emergency limiter")
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := &Guard{store: store, breaker: breaker, emergency: emergency, cfg: cfg.withDefaults()}
	g.calls.New = func() any {
		c := &Call{done: make(chan struct{}, 1), release: g.release, timer: time.NewTimer(time.Hour)}
		c.timer.Stop()
		return c
	}
	return g, nil
}

// Decide decides the charges of one request, which have distinct keys, all or nothing. It always returns within the
// budget, and fills results, of the same length, unless the decision is degraded. It panics only if the store did.
func (g *Guard) Decide(ctx context.Context, charges []limit.Charge, results []limit.Result) Decision {
	if cause := g.ask(ctx, charges, results); cause != CauseNone {
		return g.degraded(charges, cause)
	}
	return verdict(results)
}

// InFlight is the number of requests that wait for the store now.
func (g *Guard) InFlight() int { return int(g.inFlight.Load()) }

// ask puts the charges to the store, and returns what kept it from answering in time, CauseNone if nothing did.
func (g *Guard) ask(ctx context.Context, charges []limit.Charge, results []limit.Result) Cause {
	var permit Permit
	if g.breaker != nil {
		var refused Cause
		if permit, refused = g.breaker.Admit(); refused != CauseNone {
			return refused
		}
	}
	cause := g.askWithin(ctx, charges, results)
	if g.breaker != nil {
		g.breaker.Settle(permit, cause)
	}
	return cause
}

func (g *Guard) askWithin(ctx context.Context, charges []limit.Charge, results []limit.Result) Cause {
	defer g.inFlight.Add(-1)
	if g.inFlight.Add(1) > int64(g.cfg.MaxInFlight) {
		return CauseOverload
	}
	now := time.Now()
	wait := g.wait(ctx, now)
	if wait <= 0 {
		return CauseDropped
	}
	c := g.calls.Get().(*Call)
	c.Charges = append(c.Charges[:0], charges...)
	c.Results = append(c.Results[:0], results...)
	c.Deadline = now.Add(wait)
	g.store.Submit(c)
	return g.await(ctx, c, results, wait)
}

// wait is how long this request may wait for the store.
func (g *Guard) wait(ctx context.Context, now time.Time) time.Duration {
	wait := g.cfg.Budget - g.cfg.Slack
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, deadline.Sub(now)-g.cfg.Margin)
	}
	return wait
}

// await waits for c on its channel and a timer, never on a socket.
func (g *Guard) await(ctx context.Context, c *Call, results []limit.Result, wait time.Duration) Cause {
	select {
	case <-c.done: // the embedded store is done already
		return g.collect(c, results)
	default:
	}
	c.timer.Reset(wait)
	given := CauseDeadline
	select {
	case <-c.done:
		c.timer.Stop()
		return g.collect(c, results)
	case <-c.timer.C:
	case <-ctx.Done():
		c.timer.Stop()
		given = CauseCanceled
	}
	if !c.abandon() { // it completed in the same instant
		<-c.done
		return g.collect(c, results)
	}
	return given
}

// collect takes what a completed call brought.
func (g *Guard) collect(c *Call, results []limit.Result) Cause {
	cause, bug := c.cause, c.panicked
	copy(results, c.Results)
	g.release(c)
	if bug != nil {
		panic(bug)
	}
	return cause
}

// release returns a call that neither the guard nor the store uses any more.
func (g *Guard) release(c *Call) {
	clear(c.Charges) // drop the keys
	c.cause, c.panicked = CauseNone, nil
	c.state.Store(callPending)
	g.calls.Put(c)
}

// degraded decides without the store: the decision table.
func (g *Guard) degraded(charges []limit.Charge, cause Cause) Decision {
	outcome := cause.Outcome()
	for i := range charges {
		if charges[i].Endpoint.FailMode != limit.FailOpen {
			return Decision{Reason: reason(outcome, limit.FailClosed), Cause: cause, Governing: i}
		}
	}
	if cause == CauseCanceled { // nobody hears the answer, so it costs no emergency token
		return Decision{Reason: EmergencyLocalLimit, Cause: cause}
	}
	retryAfter, denied, ok := g.emergency.Take(charges)
	if !ok {
		return Decision{Reason: EmergencyLocalLimit, Cause: cause, RetryAfter: retryAfter, Governing: denied}
	}
	return Decision{Reason: reason(outcome, limit.FailOpen), Cause: cause, Allowed: true}
}

// verdict sums up what the store said of each bucket: one that denies denies all, and the caller must wait for the
// one that takes longest.
func verdict(results []limit.Result) Decision {
	d := Decision{Reason: Allowed, Allowed: true}
	for i, r := range results {
		switch {
		case r.Allowed:
			if d.Allowed && r.Remaining < results[d.Governing].Remaining {
				d.Governing = i
			}
		case r.RetryAfter == limit.Never:
			return Decision{Reason: RateLimited, Cause: CauseCostAboveMax, Governing: i}
		case d.Allowed || r.RetryAfter > d.RetryAfter:
			d = Decision{Reason: RateLimited, RetryAfter: r.RetryAfter, Governing: i}
		}
	}
	return d
}
