package telemetry

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/limit"
)

// Denial lines a second, for each reason: a flood of one reason must not hide another.
const denialsPerSecond = 5

// Denials decorates a Decider: it logs a sample of what that denies, at WARN. A request that an endpoint's emergency
// limiter admitted is no denial, and is not logged.
type Denials struct {
	next Decider
	log  zerolog.Logger

	mu      sync.Mutex
	samples map[failure.Reason]*sample
}

// sample counts the lines of one reason in the current second.
type sample struct {
	began      time.Time
	lines      int
	suppressed int // since the last line
}

// NewDenials returns the decorator of next.
func NewDenials(log zerolog.Logger, next Decider) *Denials {
	return &Denials{next: next, log: log, samples: make(map[failure.Reason]*sample)}
}

// Decide has next decide, and logs a denial.
func (d *Denials) Decide(
	ctx context.Context, charges []limit.Charge, results []limit.Result,
) failure.Decision {
	decided := d.next.Decide(ctx, charges, results)
	d.Log(charges, decided)
	return decided
}

// Log logs a decision that was made without the Decider, if it is a denial (rls.Config.OnTooDear).
func (d *Denials) Log(charges []limit.Charge, decided failure.Decision) {
	if decided.Allowed {
		return
	}
	suppressed, ok := d.sample(decided.Reason, time.Now())
	if !ok {
		return
	}
	c := &charges[decided.Governing]
	line := d.log.Warn().
		Str("domain", c.Endpoint.Domain).
		Str("endpoint_id", c.Endpoint.ID).
		Stringer("reason", decided.Reason).
		Stringer("cause", decided.Cause).
		Stringer("answer", decided.Answer()).
		Str("bucket", bucketHash(c.Key)).
		Int64("cost", c.Cost)
	if decided.RetryAfter > 0 {
		line = line.Dur("retry_after_ms", decided.RetryAfter)
	}
	if suppressed > 0 {
		line = line.Int("suppressed", suppressed)
	}
	line.Msg("request denied")
}

// sample tells whether a line of reason may be written now, and how many were not since the last one.
func (d *Denials) sample(reason failure.Reason, now time.Time) (suppressed int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.samples[reason]
	if s == nil {
		s = &sample{}
		d.samples[reason] = s
	}
	if now.Sub(s.began) >= time.Second {
		s.began, s.lines = now, 0
	}
	if s.lines >= denialsPerSecond {
		s.suppressed++
		return 0, false
	}
	s.lines++
	suppressed, s.suppressed = s.suppressed, 0
	return suppressed, true
}

// bucketHash is the hashed part of a bucket's key, rl:v1:{<hash>}<more>:<endpoint_id>:<policy_version>: enough to tell
// callers apart, and nothing that says who they are. There is more only where shard_by is.
func bucketHash(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	hash, rest, _ := strings.Cut(rest, "}")
	more, _, _ := strings.Cut(rest, ":")
	return hash + more
}
