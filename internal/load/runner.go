package load

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// shardsPerCore makes it unlikely that two workers that run at the same time meet in a shard.
const shardsPerCore = 4

// runner is one run.
type runner struct {
	cfg      Config
	target   *target
	messages *messages
	meter    *meter
	shards   []*shard
	started  time.Time

	// arrivals are the due moments of an open loop that wait for a worker.
	arrivals   chan time.Duration
	notOffered int64 // written by dispatch, read when it has ended
	// left is the number of requests that may still be sent.
	left atomic.Int64
	// admitted counts hits by key, if there is a limit to compare with.
	admitted []atomic.Int64

	fault                    window
	dialsBefore, dialsDuring int64 // sockets opened until the fault began and ended

	// ended is closed when no further request will be sent; endedAt is the moment.
	ended   chan struct{}
	endOnce sync.Once
	endedAt time.Duration
}

func newRunner(cfg Config, t *target, m *messages, cpu *meter) *runner {
	r := &runner{cfg: cfg, target: t, messages: m, meter: cpu, ended: make(chan struct{})}
	r.shards = make([]*shard, min(cfg.Connections*cfg.Streams, shardsPerCore*runtime.GOMAXPROCS(0)))
	for i := range r.shards {
		r.shards[i] = newShard(cfg)
	}
	if cfg.Rate > 0 {
		r.arrivals = make(chan time.Duration, cfg.Backlog)
	}
	if cfg.Limit != nil {
		r.admitted = make([]atomic.Int64, cfg.Keys)
	}
	r.left.Store(cfg.Requests)
	r.fault.reset()
	return r
}

// since is the time since the start.
func (r *runner) since() time.Duration { return time.Since(r.started) }

// total is when the last request is sent; 0 if only their number bounds the run.
func (r *runner) total() time.Duration {
	if r.cfg.Duration == 0 {
		return 0
	}
	return r.cfg.Warmup + r.cfg.Duration
}

// run sends everything and waits for everyone.
func (r *runner) run(ctx context.Context) error {
	calls, cancel := context.WithCancel(ctx)
	defer cancel()
	r.started = time.Now()
	var senders sync.WaitGroup
	for i := range r.cfg.Connections * r.cfg.Streams {
		senders.Go(func() { r.work(calls, i) })
	}
	if r.cfg.Rate > 0 {
		senders.Go(r.dispatch)
	}
	done := make(chan struct{})
	fault := make(chan error, 1)
	go func() { fault <- r.cause(ctx, done) }()
	go func() { senders.Wait(); close(done) }()
	err := r.supervise(ctx, done, cancel)
	return errors.Join(err, <-fault)
}

// supervise does what is to be done at certain moments, until done.
func (r *runner) supervise(ctx context.Context, done <-chan struct{}, giveUp func()) error {
	var timeUp, drained <-chan time.Time
	if r.cfg.Duration > 0 && r.cfg.Rate == 0 { // an open loop ends with its schedule, however late that is kept
		timeUp = time.After(r.total())
	}
	warm, ended, stopped, stop := time.After(r.cfg.Warmup), r.ended, ctx.Done(), r.cfg.Stop
	look := newLookout(r)
	defer look.stop()
	for {
		select {
		case <-warm:
			r.meter.begin()
		case <-timeUp:
			r.end()
		case <-stopped:
			stopped = nil
			r.end()
		case <-stop:
			stop = nil
			r.end()
		case <-ended:
			ended = nil
			_ = r.meter.finish() // kept, and told at the end
			drained = time.After(r.cfg.Drain)
		case <-drained:
			giveUp()
		case <-look.tick:
			look.report()
		case <-done:
			r.end() // a closed loop that ran out of requests has said so already
			return r.meter.finish()
		}
	}
}

// work is the body of one worker.
func (r *runner) work(ctx context.Context, i int) {
	w := &worker{
		run: r, conn: r.target.conns[i%len(r.target.conns)], shard: r.shards[i%len(r.shards)],
		keys: newDrawer(r.cfg, uint64(i)),
	}
	if r.cfg.Rate > 0 {
		w.open(ctx)
		return
	}
	workers := time.Duration(r.cfg.Connections * r.cfg.Streams)
	w.closed(ctx, r.cfg.Ramp*time.Duration(i)/workers)
}

// dispatch lets the requests of an open loop arrive.
func (r *runner) dispatch() {
	defer close(r.arrivals)
	defer r.end()
	s := schedule{perSecond: r.cfg.Rate, ramp: r.cfg.Ramp}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := int64(0); ; n++ {
		due := s.at(n)
		if !r.mayStart(due) {
			r.wait(timer, r.total()) // the run is as long as was asked for, not as its last request allows
			return
		}
		if !r.wait(timer, due) {
			return
		}
		select {
		case r.arrivals <- due:
		default:
			if r.measured(due) {
				r.notOffered++
			}
		}
	}
}

// wait is a sleepUntil for every single request: it allocates nothing, and does not sleep for what is due already.
func (r *runner) wait(timer *time.Timer, due time.Duration) bool {
	rest := due - r.since()
	if rest <= 0 {
		return true
	}
	timer.Reset(rest)
	select {
	case <-timer.C:
		return true
	case <-r.ended:
		return false
	}
}

// mayStart tells whether a request may start at the moment now, and spends one of the requests to be sent.
func (r *runner) mayStart(now time.Duration) bool {
	select {
	case <-r.ended:
		return false
	default:
	}
	if total := r.total(); total > 0 && now >= total {
		return false
	}
	if r.cfg.Requests == 0 || !r.measured(now) {
		return true
	}
	left := r.left.Add(-1)
	if left == 0 && r.cfg.Rate == 0 { // in an open loop the last one is yet to become due
		r.end()
	}
	return left >= 0
}

// measured tells whether a request that starts at the moment is part of the report.
func (r *runner) measured(at time.Duration) bool { return at >= r.cfg.Warmup }

// end says that no further request will be sent.
func (r *runner) end() {
	r.endOnce.Do(func() {
		r.endedAt = r.since()
		close(r.ended)
	})
}

// pause waits a little and returns the time.
func (r *runner) pause(d time.Duration) time.Duration {
	r.sleepUntil(r.since()+d, r.ended)
	return r.since()
}

// count records the end of one request.
func (r *runner) count(s *shard, o outcome, key int) {
	if r.admitted != nil && o.verdict == admitted {
		r.admitted[key].Add(int64(max(1, r.cfg.Hits)))
	}
	if r.cfg.OnAnswer != nil {
		r.cfg.OnAnswer(r.observation(o))
	}
	s.add(o, r.fault.phase(o.due, o.answered), r.measured(o.due))
	if int64(o.answered) >= r.fault.end.Load() && o.verdict != unanswered {
		s.recovery(o)
	}
}
