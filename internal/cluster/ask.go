package cluster

import (
	"context"
	"math/rand/v2"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/redisstore"
)

// askers are the connections on which nodes are asked for the topology. Only watch uses them.
type askers struct {
	store *Store
	all   map[string]*asker // by address
}

// asker asks one node, one question at a time.
type asker struct {
	address string
	busy    atomic.Bool
	client  *redis.Client // whoever made it busy may use it
}

// answer is what a node said.
type answer struct {
	view view
	err  error
}

func newAskers(s *Store) *askers { return &askers{store: s, all: map[string]*asker{}} }

// ask puts the question to some of the members, and one of the configured addresses. Each of the so many answers
// arrives when it does.
func (a *askers) ask(ctx context.Context, members map[string]member) (answers <-chan answer, pending int) {
	candidates := a.candidates(members)
	out := make(chan answer, len(candidates))
	for _, address := range candidates {
		one := a.all[address]
		if one == nil {
			one = &asker{address: address}
			a.all[address] = one
		}
		if one.busy.Swap(true) { // it has not answered the last one yet
			continue
		}
		pending++
		a.store.workers.Go(func() {
			defer one.busy.Store(false)
			v, err := one.ask(ctx, &a.store.cfg)
			out <- answer{v, err}
		})
	}
	a.prune(members)
	return out, pending
}

// candidates are masters first, for they know best, in random order.
func (a *askers) candidates(members map[string]member) []string {
	seeds := a.store.cfg.Addresses
	var masters, others []string
	for _, m := range members {
		switch address := a.store.cfg.translate(m.address); {
		case m.address == "":
		case m.master && !m.failing:
			masters = append(masters, address)
		default:
			others = append(others, address)
		}
	}
	for _, group := range [][]string{masters, others} {
		rand.Shuffle(len(group), func(i, j int) { group[i], group[j] = group[j], group[i] })
	}
	known := append(masters, others...)
	if len(known) == 0 {
		return seeds[:min(len(seeds), 2*askedAtOnce)]
	}
	return unique(append(known[:min(len(known), askedAtOnce-1)], seeds[rand.IntN(len(seeds))]))
}

func unique(addresses []string) []string {
	seen, out := map[string]bool{}, addresses[:0]
	for _, address := range addresses {
		if !seen[address] {
			seen[address] = true
			out = append(out, address)
		}
	}
	return out
}

// prune forgets those who are neither members nor configured any more.
func (a *askers) prune(members map[string]member) {
	keep := map[string]bool{}
	for _, m := range members {
		keep[a.store.cfg.translate(m.address)] = true
	}
	for _, address := range a.store.cfg.Addresses {
		keep[address] = true
	}
	for address, one := range a.all {
		if !keep[address] && !one.busy.Swap(true) {
			one.hangUp()
			delete(a.all, address)
		}
	}
}

// close hangs up. Nobody may be asking any more.
func (a *askers) close() {
	for _, one := range a.all {
		one.hangUp()
	}
}

func (a *asker) hangUp() {
	if a.client != nil {
		_ = a.client.Close() // it is of no more use, whatever it says
		a.client = nil
	}
}

// ask asks for CLUSTER NODES, which has the epochs, and for CLUSTER SLOTS, which has the endpoints. A node that fails
// to answer is dialed anew the next time, with the credentials of then.
func (a *asker) ask(ctx context.Context, cfg *Config) (v view, err error) {
	defer func() {
		if err != nil {
			a.hangUp()
		}
	}()
	if a.client == nil {
		target, err := cfg.Access.Target(a.address)
		if err != nil {
			return view{}, err
		}
		a.client = redisstore.NewClient(target, cfg.Timeout)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.Timeout)
	defer cancel()
	pipe := a.client.Pipeline()
	nodes, slots := pipe.Do(ctx, "cluster", "nodes"), pipe.Do(ctx, "cluster", "slots")
	_, _ = pipe.Exec(ctx) // each command has its own error
	text, err := nodes.Text()
	if err != nil {
		return view{}, err
	}
	ranges, _ := slots.Slice() // whoever does not say has the nodes called as they are listed
	return parseView(text, a.address, parseEndpoints(ranges, a.address))
}
