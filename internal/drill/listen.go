package drill

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

// resubscribe is how long a listener waits after it has lost its Sentinel.
const resubscribe = 100 * time.Millisecond

// maxEvents bounds what is kept of the Sentinels' words.
const maxEvents = 20_000

// events listens to every Sentinel by itself, beside the service: what the service makes of the events is what is
// being judged.
func (w *watcher) events(ctx context.Context, sentinels []observed) {
	for _, s := range sentinels {
		w.running.Go(func() {
			for ctx.Err() == nil {
				w.listen(ctx, s)
				pause(ctx, resubscribe)
			}
		})
	}
}

// listen reads events until the subscription is lost.
func (w *watcher) listen(ctx context.Context, s observed) {
	subscription := s.client.PSubscribe(ctx, "*")
	defer subscription.Close()
	stop := context.AfterFunc(ctx, func() { _ = subscription.Close() }) // ends the read below
	defer stop()
	for {
		message, err := subscription.Receive(ctx)
		if err != nil {
			return
		}
		m, ok := message.(*redis.Message)
		if !ok {
			continue
		}
		e := event(m)
		e.At, e.Source = w.rec.now(), s.name
		w.rec.write(func(j *journal.Journal) {
			if len(j.Events) < maxEvents {
				j.Events = append(j.Events, e)
			}
		})
	}
}

// event reads what a Sentinel published: "master mymaster 127.0.0.1 6379", or "mymaster ip port ip port".
func event(m *redis.Message) journal.Event {
	e := journal.Event{Name: m.Channel, Text: m.Payload}
	kind, rest, _ := strings.Cut(m.Payload, " ")
	switch kind {
	case "master", "slave", "sentinel":
		e.Kind, e.Text = kind, rest
	}
	return e
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
