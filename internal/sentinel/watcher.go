package sentinel

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/pkg/failure"
)

const (
	// suspectSpacing is how close together Suspect may have all Sentinels asked: a fleet's lanes all break at once.
	suspectSpacing = 100 * time.Millisecond
	// alertLasts is for how long the Sentinels are asked more often after the last sign of trouble.
	alertLasts = 3 * time.Second
)

// Watcher knows where the master is. It implements redisstore.Resolver and redisstore.Mover.
type Watcher struct {
	cfg     Config
	running sync.WaitGroup // the goroutines of all posts

	// mu guards the rest. It is never held across I/O or a hook.
	mu       sync.Mutex
	watch    func(*post) // starts the goroutines of a post; nil unless Run is going
	posts    map[string]*post
	ballot   *ballot
	failover failover
	moved    chan struct{} // closed when Resolve's answer changes
	since    time.Time
	switches uint64

	alertUntil time.Time
	suspected  time.Time // when Suspect last had the Sentinels asked
	lastQuorum Quorum    // as the hook was told
}

// New returns a watcher that knows nothing before it runs.
func New(cfg Config) (*Watcher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	w := &Watcher{
		cfg: cfg.withDefaults(), posts: map[string]*post{}, ballot: newBallot(), moved: make(chan struct{}),
	}
	for _, address := range w.cfg.Addresses {
		if w.posts[address] == nil {
			w.posts[address] = newPost(w, address, seed)
		}
	}
	w.ballot.size = len(w.posts)
	return w, nil
}

// String names the master and the Sentinels that were configured.
func (w *Watcher) String() string {
	return w.cfg.Master + " of the Sentinels " + strings.Join(w.cfg.Addresses, ", ")
}

// Run watches until ctx ends, and returns when everything that it started is over. It must be called once.
func (w *Watcher) Run(ctx context.Context) {
	w.mu.Lock()
	w.watch = func(p *post) { p.start(ctx) }
	for _, p := range w.posts {
		w.watch(p)
	}
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	w.watch = nil
	w.mu.Unlock()
	w.running.Wait()
}

// Resolve returns the master with the credentials as they are now. It waits until one is known. Its error wraps that
// of ctx and says what is the matter with the Sentinels.
func (w *Watcher) Resolve(ctx context.Context) (redisstore.Target, error) {
	for {
		w.mu.Lock()
		master, moved := w.ballot.accepted.master, w.moved
		w.mu.Unlock()
		if master != "" {
			return w.target(master)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return redisstore.Target{}, w.explain(ctx.Err())
		}
	}
}

// Moved is closed when Resolve's answer is another than it is now.
func (w *Watcher) Moved() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.moved
}

// Suspect has the Sentinels asked at once, and more often for a while: somebody found the master not to be one, or not
// to be there. It does not wait.
func (w *Watcher) Suspect(failure.Cause) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.alert(now)
	if now.Sub(w.suspected) < suspectSpacing {
		return
	}
	w.suspected = now
	for _, p := range w.posts {
		p.poke()
	}
}

// Replicas are the replicas that can be reached, as the Sentinels last reported.
func (w *Watcher) Replicas() []redisstore.Target {
	w.mu.Lock()
	replicas := w.replicas()
	w.mu.Unlock()
	var targets []redisstore.Target
	for _, r := range replicas {
		if !r.Healthy {
			continue
		}
		if t, err := w.target(r.Address); err == nil {
			targets = append(targets, t)
		}
	}
	return targets
}

// target is how a data node is reached.
func (w *Watcher) target(announced string) (redisstore.Target, error) {
	t, err := w.cfg.Data.Target(announced)
	if err != nil {
		return redisstore.Target{}, fmt.Errorf("sentinel: master %s: %w", w.cfg.Master, err)
	}
	t.Address, t.DB = w.cfg.dialed(announced), w.cfg.DB
	return t, nil
}

// explain says why no master is known although err, the end of a context, is here.
func (w *Watcher) explain(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	reachable, ignorant := 0, 0
	var troubles []string
	for _, p := range w.posts {
		switch {
		case p.reachable:
			reachable++
		case p.ignorant:
			ignorant++
		}
		if p.trouble != nil {
			troubles = append(troubles, p.address+": "+clean(p.trouble.Error()))
		}
	}
	why := ErrNoSentinel
	switch {
	case reachable > 0:
		why = ErrUndecided
	case ignorant > 0:
		why = ErrUnknownMaster
	}
	slices.Sort(troubles)
	return fmt.Errorf("sentinel: master %q: %w (%d of %d Sentinels know it, %d do not; %s): %w", w.cfg.Master, why,
		reachable, len(w.posts), ignorant, strings.Join(troubles[:min(len(troubles), 3)], "; "), err)
}

// replicas are those that the Sentinels with the accepted master last reported, each as the newest report has it: one
// that was just restarted may not know them all. The caller holds mu.
func (w *Watcher) replicas() []Replica {
	var agreeing []*post
	for _, p := range w.posts {
		if p.claim.master == w.ballot.accepted.master {
			agreeing = append(agreeing, p)
		}
	}
	slices.SortFunc(agreeing, func(x, y *post) int { return y.reported.Compare(x.reported) })
	var all []Replica
	for _, p := range agreeing {
		for _, r := range p.replicas {
			known := slices.ContainsFunc(all, func(k Replica) bool { return k.Address == r.Address })
			if !known && len(all) < maxReplicas {
				all = append(all, r)
			}
		}
	}
	return all
}

// nobodySays is the text of a quorum that no Sentinel told of.
const nobodySays = "no Sentinel tells"

// quorum sums up what the Sentinels that answer say. The caller holds mu.
func (w *Watcher) quorum() Quorum {
	q := Quorum{Text: nobodySays}
	asked := false
	for _, address := range slices.Sorted(maps.Keys(w.posts)) {
		p := w.posts[address]
		if !p.reachable || p.quorum == (Quorum{}) {
			continue
		}
		if !asked || p.quorum.OK && !q.OK {
			q, asked = p.quorum, true
		}
	}
	return q
}

// alert has the Sentinels asked more often from now on. The caller holds mu.
func (w *Watcher) alert(now time.Time) {
	before := w.alertUntil
	w.alertUntil = now.Add(alertLasts)
	if before.After(now) {
		return
	}
	for _, p := range w.posts {
		p.poke()
	}
}

// interval is how long to wait before the next question.
func (w *Watcher) interval() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ballot.known() || time.Now().Before(w.alertUntil) {
		return w.cfg.AlertInterval
	}
	return w.cfg.PollInterval
}
