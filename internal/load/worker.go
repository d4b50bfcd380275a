package load

import (
	"context"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// refusedPause is how long a worker of a closed loop waits after an answer UNAVAILABLE. A service that is gone answers
// at once, and a hundred workers that ask again at once would take the processor from whatever is to bring it back.
const refusedPause = 5 * time.Millisecond

// worker sends one request at a time.
type worker struct {
	run   *runner
	conn  *grpc.ClientConn
	shard *shard
	keys  drawer
	call  call
	// reason holds the bytes of a reason that no answer carried.
	reason []byte
}

// closed sends each request when the last one is answered.
func (w *worker) closed(ctx context.Context, start time.Duration) {
	if !w.run.sleepUntil(start, w.run.ended) {
		return
	}
	for now := w.run.since(); w.run.mayStart(now); {
		o := w.send(ctx, now, now)
		if o.verdict == unanswered { // the run was stopped or is out of patience
			return
		}
		now = o.answered
		if o.verdict == failed && string(o.reason) == codes.Unavailable.String() {
			now = w.run.pause(refusedPause)
		}
	}
}

// open sends the requests that are due. Those left when ctx is done are counted as unanswered.
func (w *worker) open(ctx context.Context) {
	for due := range w.run.arrivals {
		w.send(ctx, due, w.run.since())
	}
}

// send does one request and counts what came of it.
func (w *worker) send(ctx context.Context, due, sent time.Duration) outcome {
	key := w.keys.next()
	w.call.request = w.run.messages.at(key)
	err := w.invoke(ctx)
	o := w.outcome(ctx, err)
	o.due, o.sent, o.answered = due, sent, w.run.since()
	w.run.count(w.shard, o, key)
	return o
}

func (w *worker) invoke(ctx context.Context) error {
	if w.run.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.run.cfg.Timeout)
		defer cancel()
	}
	return w.conn.Invoke(ctx, ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName, &w.call, &w.call)
}

// outcome reads the answer in w.call, or err.
func (w *worker) outcome(ctx context.Context, err error) outcome {
	switch {
	case err != nil && ctx.Err() != nil:
		return outcome{verdict: unanswered}
	case err != nil:
		return outcome{verdict: failed, reason: w.word(status.Code(err).String())}
	}
	r := &w.call.reply
	o := outcome{verdict: overLimit, ordinary: !r.degraded, reason: r.decision}
	if r.code != ratelimitv3.RateLimitResponse_OVER_LIMIT {
		o.verdict = admitted // Envoy lets pass what is not OVER_LIMIT, UNKNOWN too
	}
	if len(o.reason) == 0 {
		o.reason = w.word(r.code.String())
	}
	return o
}

func (w *worker) word(s string) []byte {
	w.reason = append(w.reason[:0], s...)
	return w.reason
}
