package drill

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/scripts"
)

// How often everything is looked at, and how long a look may take.
const (
	serviceInterval = 20 * time.Millisecond
	roundInterval   = 100 * time.Millisecond
	voteInterval    = 200 * time.Millisecond
	lookTimeout     = 250 * time.Millisecond
	stallInterval   = 5 * time.Millisecond
	leastStall      = 5 * time.Millisecond // less is no excuse
)

// watcher runs everybody who watches, and waits for them.
type watcher struct {
	rec     *recorder
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newWatcher(rec *recorder) *watcher { return &watcher{rec: rec} }

// every calls look each interval until ctx ends.
func (w *watcher) every(ctx context.Context, interval time.Duration, look func(context.Context)) {
	w.running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				look(ctx)
			}
		}
	})
}

func (w *watcher) stop() {
	w.cancel()
	w.running.Wait()
}

// service samples the service's state.
func (w *watcher) service(ctx context.Context, s *service) {
	w.every(ctx, serviceInterval, func(ctx context.Context) {
		at := w.rec.now()
		now, err := s.state(ctx)
		if err != nil {
			return // the next look is near, and a service that is gone shows in its answers
		}
		sample := now.sample()
		sample.At = at
		w.rec.write(func(j *journal.Journal) { j.Service = append(j.Service, sample) })
	})
}

// stalls notes for how long this process waits for a processor when it wants one.
func (w *watcher) stalls(ctx context.Context) {
	last := time.Now()
	w.every(ctx, stallInterval, func(context.Context) {
		late := time.Since(last) - stallInterval
		last = time.Now()
		if late < leastStall {
			return
		}
		at := w.rec.now()
		w.rec.write(func(j *journal.Journal) { j.Stalls = append(j.Stalls, journal.Stall{At: at, Late: late}) })
	})
}

// observed is a Redis server or a Sentinel that a drill may ask, by a way that no fault cuts off.
type observed struct {
	name    string
	address string // as the topology announces it
	client  *redis.Client
}

// votes asks every Sentinel for CKQUORUM.
func (w *watcher) votes(ctx context.Context, master string, sentinels []observed) {
	for _, s := range sentinels {
		w.every(ctx, voteInterval, func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, lookTimeout)
			defer cancel()
			at := w.rec.now()
			text, err := s.client.Do(ctx, "sentinel", "ckquorum", master).Text()
			vote := journal.Vote{At: at, Sentinel: s.name, OK: err == nil, Text: text}
			if err != nil {
				vote.Text = shortError(err)
			}
			w.rec.write(func(j *journal.Journal) { j.Votes = append(j.Votes, vote) })
		})
	}
}

// shortError is what a server said, or that it said nothing: errors of the network differ from look to look.
func shortError(err error) string {
	if text, ok := strings.CutPrefix(err.Error(), "NOQUORUM "); ok {
		return "NOQUORUM: " + text
	}
	var refusal redis.Error
	if errors.As(err, &refusal) {
		return refusal.Error()
	}
	return "no answer"
}

// rounds looks at all data nodes at once, again and again.
func (w *watcher) rounds(ctx context.Context, nodes []observed) {
	sum := sha1.Sum([]byte(scripts.Decide()))
	script := hex.EncodeToString(sum[:])
	w.every(ctx, roundInterval, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, lookTimeout)
		defer cancel()
		at := w.rec.now()
		looks := make([]look, len(nodes))
		var asked sync.WaitGroup
		for i, n := range nodes {
			asked.Go(func() { looks[i] = n.look(ctx, script) })
		}
		asked.Wait()
		round := journal.Round{At: at, Nodes: states(nodes, looks)}
		w.rec.write(func(j *journal.Journal) { j.Rounds = append(j.Rounds, round) })
	})
}

// look is what one node said.
type look struct {
	info   map[string]string
	script bool
	err    error
}

func (o observed) look(ctx context.Context, script string) look {
	pipe := o.client.Pipeline()
	replication, stats := pipe.Info(ctx, "replication"), pipe.Info(ctx, "stats")
	exists := pipe.ScriptExists(ctx, script)
	if _, err := pipe.Exec(ctx); err != nil {
		return look{err: err}
	}
	l := look{info: map[string]string{}, script: len(exists.Val()) == 1 && exists.Val()[0]}
	for line := range strings.Lines(replication.Val() + "\n" + stats.Val()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			l.info[name] = value
		}
	}
	return l
}

// states puts the looks together: how far behind a replica is only its master knows.
func states(nodes []observed, looks []look) []journal.NodeState {
	lags := map[string]int{}
	for _, l := range looks {
		if l.err != nil || l.info["role"] != "master" {
			continue
		}
		for i := 0; l.info[fmt.Sprintf("slave%d", i)] != ""; i++ {
			address, lag := slaveLine(l.info[fmt.Sprintf("slave%d", i)])
			lags[address] = lag
		}
	}
	list := make([]journal.NodeState, len(nodes))
	for i, n := range nodes {
		list[i] = n.state(looks[i], lags)
	}
	return list
}

func (o observed) state(l look, lags map[string]int) journal.NodeState {
	s := journal.NodeState{Name: o.name, Address: o.address, LagSeconds: -1}
	if l.err != nil {
		s.Error = shortError(l.err)
		return s
	}
	s.Master, s.Script = l.info["role"] == "master", l.script
	s.LinkUp = l.info["master_link_status"] == "up"
	if lag, known := lags[o.address]; known && !s.Master {
		s.LagSeconds = lag
	}
	offset := "slave_repl_offset"
	if s.Master {
		offset = "master_repl_offset"
	}
	s.Offset, _ = strconv.ParseInt(l.info[offset], 10, 64)
	s.Accepted, _ = strconv.ParseInt(l.info["total_connections_received"], 10, 64)
	return s
}

// slaveLine reads ip=127.0.0.1,port=6380,state=online,offset=1,lag=0. A replica that is not online has no lag yet.
func slaveLine(line string) (address string, lag int) {
	fields := map[string]string{}
	for part := range strings.SplitSeq(line, ",") {
		name, value, _ := strings.Cut(part, "=")
		fields[name] = value
	}
	lag, err := strconv.Atoi(fields["lag"])
	if err != nil || fields["state"] != "online" {
		lag = -1
	}
	return fields["ip"] + ":" + fields["port"], lag
}
