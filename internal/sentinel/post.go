package sentinel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
)

// origin is how a Sentinel became known.
type origin uint8

const (
	seed   origin = 1 + iota // configured: never forgotten
	learnt                   // named by another Sentinel
)

// questionSpacing is how close together two questions to a Sentinel may be, however many events it sends.
const questionSpacing = 5 * time.Millisecond

var errTorn = errors.New("its answers change while it gives them")

// post is the watch over one Sentinel: one goroutine asks it, another listens to its events, each on a connection of
// its own. A Sentinel that hangs delays nobody but them.
type post struct {
	w       *Watcher
	address string // as configured or announced
	origin  origin
	kick    chan struct{} // holds one wish to be asked at once
	stop    context.CancelFunc

	// The rest is guarded by the Watcher's mu.

	id         string    // the Sentinel's own; empty if it does not tell
	reachable  bool      // it answered the last question
	ignorant   bool      // it answered that it knows no such master
	subscribed bool      // its events are listened to
	tried      bool      // it was tried at least once
	lostAt     time.Time // since when it does not answer
	trouble    error     // why it last failed
	claim      claim
	told       masterState
	epoch      uint64 // the newest that it told of
	quorum     Quorum
	peers      []peer
	replicas   []Replica
	reported   time.Time // when it told of peers and replicas
}

func newPost(w *Watcher, address string, from origin) *post {
	return &post{
		w: w, address: address, origin: from, kick: make(chan struct{}, 1), stop: func() {}, lostAt: time.Now(),
	}
}

// voter is the name that the ballot knows the Sentinel by.
func (p *post) voter() string { return cmp.Or(p.id, p.address) }

// start has the Sentinel watched until ctx ends or stop is called.
func (p *post) start(ctx context.Context) {
	ctx, p.stop = context.WithCancel(ctx)
	p.w.running.Go(func() { p.insist(ctx, p.ask) })
	p.w.running.Go(func() { p.insist(ctx, p.listen) })
}

// poke has the Sentinel asked at once.
func (p *post) poke() {
	select {
	case p.kick <- struct{}{}:
	default: // it will be already
	}
}

// insist runs a session, which ends when its connection does, again and again. A session says through succeeded that
// the Sentinel is well.
func (p *post) insist(ctx context.Context, session func(ctx context.Context, succeeded func()) error) {
	b := backoff{least: p.w.cfg.BackoffMin, most: p.w.cfg.BackoffMax}
	for ctx.Err() == nil {
		if session(ctx, b.succeeded) != nil {
			sleep(ctx, b.pause())
		}
	}
}

// connect opens a connection with the credentials as they are now.
func (p *post) connect(ctx context.Context) (*wire, error) {
	target, err := p.w.cfg.Sentinels.Target(p.address)
	if err != nil {
		return nil, err
	}
	target.Address = p.w.cfg.dialed(p.address)
	return connect(ctx, target, p.w.cfg.Timeout)
}

// ask is a session of questions.
func (p *post) ask(ctx context.Context, succeeded func()) (err error) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			p.w.failed(p, err)
		}
	}()
	c, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	replies, err := c.ask([]string{"SENTINEL", "MYID"})
	if err != nil {
		return err
	}
	p.w.identified(p, parseID(replies[0]))
	q := questioner{wire: c, cfg: &p.w.cfg}
	for {
		a, err := q.question()
		if err != nil {
			return err
		}
		p.w.answered(p, a)
		succeeded()
		if !p.rest(ctx, a.asked) {
			return nil
		}
	}
}

// rest waits for the next question; false if there is none.
func (p *post) rest(ctx context.Context, asked time.Time) bool {
	timer := time.NewTimer(redisstore.Jitter(p.w.interval()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.kick:
	case <-ctx.Done():
		return false
	}
	return sleep(ctx, questionSpacing-time.Since(asked))
}

// listen is a session of events.
func (p *post) listen(ctx context.Context, succeeded func()) (err error) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			p.w.deafened(p, err)
		}
	}()
	c, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.send([]string{"PSUBSCRIBE", "*"}); err != nil {
		return err
	}
	reply, err := c.receive(nil)
	if err != nil {
		return err
	}
	if no, ok := reply.(refusal); ok {
		return fmt.Errorf("PSUBSCRIBE: %w", refused(no))
	}
	p.w.listening(p)
	succeeded()
	return p.hear(c)
}

// hear passes events on until the connection breaks.
func (p *post) hear(c *wire) error {
	for {
		reply, err := c.next(p.w.cfg.PollInterval)
		if err != nil {
			return err
		}
		switch r := reply.(type) {
		case refusal:
			return refused(r)
		case []any:
			if len(r) == 4 && r[0] == "pmessage" {
				p.w.heard(p, text(r[2]), text(r[3]))
			}
		}
	}
}

func (p *post) member() Member {
	m := Member{
		Address: p.address, Reachable: p.reachable, Subscribed: p.subscribed,
		Master: p.claim.master, Epoch: p.claim.epoch,
	}
	if p.trouble != nil {
		m.LastError = clean(p.trouble.Error())
	}
	return m
}
