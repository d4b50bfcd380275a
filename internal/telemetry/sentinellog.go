package telemetry

import (
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/honestlimit/ratelimit/internal/sentinel"
)

const (
	// sentinelEcho is for how long other Sentinels may tell of the same event after the first did.
	sentinelEcho = 10 * time.Second
	// sentinelEchoes is how many events are remembered for that.
	sentinelEchoes = 256
)

// SentinelLog logs what Sentinels announce, and what becomes of them, one line each. What several Sentinels tell of is
// logged once.
type SentinelLog struct {
	log zerolog.Logger

	mu   sync.Mutex
	told map[sentinelEvent]time.Time
}

// sentinelEvent is what makes two announcements the same.
type sentinelEvent struct {
	name, address, master string
	epoch                 uint64
}

// NewSentinelLog returns a writer of such lines.
func NewSentinelLog(log zerolog.Logger) *SentinelLog {
	return &SentinelLog{log: log, told: map[sentinelEvent]time.Time{}}
}

// Hooks are what a watcher must be configured with to be counted by events and logged by l.
func (l *SentinelLog) Hooks(events *SentinelEvents) sentinel.Hooks {
	return sentinel.Hooks{
		Event: func(from string, e sentinel.Event) {
			events.Observe(from, e)
			l.Event(from, e)
		},
		Switched: l.Switched, Found: l.Found, Lost: l.Lost, Quorum: l.Quorum,
	}
}

// Event logs an announcement (sentinel.Hooks.Event).
func (l *SentinelLog) Event(from string, e sentinel.Event) {
	if !l.isNews(e, time.Now()) {
		return
	}
	line := l.log.WithLevel(levelOf(e)).Str("event", e.Name).Str("sentinel", from).Uint64("epoch", e.Epoch)
	if e.Kind != "" {
		line.Str("kind", e.Kind).Str("address", e.Address).Str("master", e.Master)
	}
	if e.Elapsed > 0 {
		line.Stringer("elapsed", e.Elapsed)
	}
	line.Msg("Sentinel event")
}

// levelOf warns of what changes, or may change, who the master is.
func levelOf(e sentinel.Event) zerolog.Level {
	switch {
	case e.Name == sentinel.OtherEvent:
		return zerolog.DebugLevel
	case strings.HasPrefix(e.Name, "-failover-abort"), e.Name == "+tilt":
		return zerolog.WarnLevel
	case e.Kind != "master":
		return zerolog.InfoLevel
	case e.Name == "+sdown", e.Name == "+odown", e.Name == "+try-failover", e.Name == "+switch-master":
		return zerolog.WarnLevel
	default:
		return zerolog.InfoLevel
	}
}

// isNews tells whether no other Sentinel told of e just now, and remembers it.
func (l *SentinelLog) isNews(e sentinel.Event, now time.Time) bool {
	key := sentinelEvent{name: e.Name, address: e.Address, master: e.Master, epoch: e.Epoch}
	if e.Fact() {
		key.epoch = 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, told := l.told[key]; told && now.Sub(at) < sentinelEcho {
		return false
	}
	if len(l.told) >= sentinelEchoes {
		clear(l.told) // the worst that comes of it is a line twice
	}
	l.told[key] = now
	return true
}

// Switched logs another master (sentinel.Hooks.Switched).
func (l *SentinelLog) Switched(s sentinel.Switch) {
	line := l.log.Info()
	if s.From != "" {
		line = l.log.Warn().Str("from", s.From)
	}
	line.Str("to", s.To)
	if s.Epoch > 0 {
		line.Uint64("epoch", s.Epoch)
	}
	if s.Took > 0 {
		line.Stringer("took", s.Took)
	}
	line.Msg("master named by Sentinels")
}

// Found logs that a Sentinel answers (sentinel.Hooks.Found).
func (l *SentinelLog) Found(address string) {
	l.log.Info().Str("sentinel", address).Msg("Sentinel answers")
}

// Lost logs that a Sentinel does not answer (sentinel.Hooks.Lost).
func (l *SentinelLog) Lost(address string, err error) {
	l.log.Warn().Str("sentinel", address).Str("error", err.Error()).Msg("Sentinel lost")
}

// Quorum logs whether a failover could happen (sentinel.Hooks.Quorum).
func (l *SentinelLog) Quorum(q sentinel.Quorum) {
	line := l.log.Info()
	if !q.OK {
		line = l.log.Warn()
	}
	line.Bool("ok", q.OK).Str("text", q.Text).Msg("quorum of the Sentinels")
}
