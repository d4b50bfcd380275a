package preflight

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/scripts"
)

// rounds is how often Sentinels are asked for further ones. The first answer names all, unless they are ill.
const rounds = 3

// atOnce is how many servers are asked at the same time.
const atOnce = 32

// survey gathers facts.
type survey struct {
	cfg    Config
	setup  Setup
	seeds  redisstore.Seeds
	alone  *redisstore.Standalone // of a standalone server, as the service logs in
	boss   *redisstore.Standalone // the same for the admin
	script string
	sha    string
	db     int
	// bucket begins the key of the bucket that is charged.
	bucket string
}

func newSurvey(cfg Config) (*survey, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &survey{cfg: cfg.withDefaults(), script: scripts.Decide(), bucket: "rl:preflight:" + rand.Text()[:8] + ":"}
	sum := sha1.Sum([]byte(s.script))
	s.sha = hex.EncodeToString(sum[:])
	if !redisstore.HasSeeds(cfg.URL) {
		return s, s.openAlone()
	}
	return s, s.openSeeds()
}

// openAlone and openSeeds err if a file cannot be read: that is a fault of the question, not of the servers.
func (s *survey) openAlone() (err error) {
	s.setup = Standalone
	if s.alone, err = redisstore.NewStandalone(s.cfg.URL, s.cfg.Data); err != nil {
		return err
	}
	target, err := s.alone.Resolve(context.Background())
	if err != nil {
		return err
	}
	s.cfg.Data.Username, s.db = target.Username, target.DB
	if s.boss, err = redisstore.NewStandalone(s.cfg.URL, s.adminAccess()); err != nil {
		return err
	}
	_, err = s.boss.Resolve(context.Background())
	return err
}

func (s *survey) openSeeds() (err error) {
	if s.seeds, err = redisstore.ParseSeeds(s.cfg.URL); err != nil {
		return err
	}
	if err := s.cfg.Data.Validate(); err != nil {
		return err
	}
	s.setup, s.db = Sentinel, s.seeds.DB
	if s.seeds.Topology == redisstore.Cluster {
		s.setup = Cluster
	}
	s.cfg.Data.Username = cmp.Or(s.cfg.Data.Username, s.seeds.Username)
	if s.cfg.Data.Password == "" && s.cfg.Data.PasswordFile == "" {
		s.cfg.Data.Password = s.seeds.Password
	}
	for _, access := range []redisstore.Access{s.cfg.Data, s.cfg.Sentinels, s.adminAccess()} {
		if _, err := access.Target(s.seeds.Addresses[0]); err != nil {
			return err
		}
	}
	return nil
}

// adminAccess is the admin's account over the service's kind of connection.
func (s *survey) adminAccess() redisstore.Access {
	access := s.cfg.Data
	access.Username, access.Password, access.PasswordFile =
		s.cfg.Admin.Username, s.cfg.Admin.Password, s.cfg.Admin.PasswordFile
	return access
}

// gather asks every server.
func (s *survey) gather(ctx context.Context) *facts {
	f := &facts{
		setup: s.setup, cfg: s.cfg, account: cmp.Or(s.cfg.Data.Username, "default"),
	}
	switch s.setup {
	case Sentinel:
		s.askWatchers(ctx, f)
		s.askNodes(ctx, f, f.announced())
		f.master = s.electedMaster(ctx, f)
		f.shared = s.shared()
	case Cluster:
		s.askNodes(ctx, f, s.seeds.Addresses)
		s.askNodes(ctx, f, s.peersOf(f))
	case Standalone:
		s.askNodes(ctx, f, []string{s.alone.String()})
		f.master = s.alone.String()
	}
	s.measure(ctx, f)
	f.now = time.Now()
	return f
}

// askWatchers asks the Sentinels that the URL names, then those that these know of.
func (s *survey) askWatchers(ctx context.Context, f *facts) {
	known := map[string]bool{}
	todo := s.seeds.Addresses
	for round := 0; round < rounds && len(todo) > 0; round++ {
		todo = s.strangers(ctx, todo, known)
		asked := make([]*watcher, len(todo))
		each(todo, func(i int) { asked[i] = s.askWatcher(ctx, todo[i]) })
		f.watchers = append(f.watchers, asked...)
		todo = nil
		for _, w := range asked {
			for _, other := range w.others {
				todo = append(todo, endpoint(other))
			}
		}
	}
}

// askNodes asks data nodes that have not been asked yet.
func (s *survey) askNodes(ctx context.Context, f *facts, addresses []string) {
	known := map[string]bool{}
	for _, n := range f.nodes {
		known[s.identity(ctx, n.address)] = true
	}
	todo := s.strangers(ctx, addresses, known)
	asked := make([]*node, len(todo))
	each(todo, func(i int) { asked[i] = s.askNode(ctx, todo[i]) })
	f.nodes = append(f.nodes, asked...)
}

// announced are the data nodes that Sentinels name.
func (f *facts) announced() []string {
	var all []string
	for _, w := range f.awake() {
		if len(w.master) > 0 {
			all = append(all, endpoint(w.master))
		}
		for _, r := range w.replicas {
			all = append(all, endpoint(r))
		}
	}
	return all
}

// electedMaster is the master that most Sentinels name, by the address under which it was asked.
func (s *survey) electedMaster(ctx context.Context, f *facts) string {
	votes := map[string]int{}
	best := ""
	for _, w := range f.awake() {
		if len(w.master) == 0 {
			continue
		}
		id := s.identity(ctx, endpoint(w.master))
		if votes[id]++; votes[id] > votes[best] {
			best = id
		}
	}
	for _, n := range f.nodes {
		if s.identity(ctx, n.address) == best {
			return n.address
		}
	}
	return ""
}

// peersOf are the nodes that the nodes asked so far know of.
func (s *survey) peersOf(f *facts) []string {
	var all []string
	for _, n := range f.alive() {
		named := n.config["cluster-preferred-endpoint-type"] == "hostname"
		for _, p := range n.view.peers {
			if p.is("myself") || p.is("noaddr") || p.is("handshake") {
				continue
			}
			if named {
				all = append(all, cmp.Or(p.name, p.address))
				continue
			}
			all = append(all, p.address)
		}
	}
	return all
}

// shared tells whether the service has the same password everywhere.
func (s *survey) shared() bool {
	data, err1 := s.target(s.seeds.Addresses[0], asService, false)
	watchers, err2 := s.target(s.seeds.Addresses[0], asService, true)
	return err1 == nil && err2 == nil && data.Password != "" && data.Password == watchers.Password
}

// each calls do for every index of list, some of them at the same time.
func each[T any](list []T, do func(i int)) {
	var wait sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i := range list {
		places <- struct{}{}
		wait.Go(func() {
			defer func() { <-places }()
			do(i)
		})
	}
	wait.Wait()
}

// reason is an error in one line.
func reason(err error) string { return strings.ReplaceAll(fmt.Sprint(err), "\n", " ") }
