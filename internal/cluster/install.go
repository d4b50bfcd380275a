package cluster

import (
	"maps"
	"slices"
	"time"
)

// strangerLife is how long a shard is kept that was opened for a node the topology does not show.
const strangerLife = 10 * time.Second

// install makes routes of what the views say; false if that is nothing.
func (s *Store) install(views []view) bool {
	before, next := s.replace(views)
	if next == nil {
		return false
	}
	s.tell(before, next) // outside the lock, for whoever is told may ask for Stats
	return true
}

func (s *Store) replace(views []view) (before, next *routes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	latest := merge(s.news, views, time.Now())
	if latest == nil {
		return nil, nil
	}
	s.news = latest
	if before = s.routes.Load(); before == nil {
		before = &routes{}
	}
	next = s.route(before)
	s.routes.Store(next)
	s.restless.clear()
	for _, sh := range before.shards {
		if !slices.Contains(next.shards, sh) {
			s.retire(sh)
		}
	}
	return before, next
}

// route makes the routes of the news. Shards that stay are those of before: their connections and breakers go on.
func (s *Store) route(before *routes) *routes {
	next := &routes{named: map[string]*shard{}}
	index := map[string]uint16{}
	owners := map[string]bool{}
	for _, c := range s.news.owners {
		owners[c.id] = true
	}
	add := func(m member) {
		address := s.cfg.translate(m.address)
		sh := next.at(address)
		if sh == nil {
			if sh = before.at(address); sh == nil || owners[m.id] && before.heir(sh) {
				sh = s.open(address)
			}
			next.shards = append(next.shards, sh)
		}
		index[m.id] = 1 + uint16(slices.Index(next.shards, sh))
		for _, name := range m.names {
			next.named[s.cfg.translate(name)] = sh
		}
		next.named[address] = sh
	}
	for _, id := range slices.Sorted(maps.Keys(s.news.members)) {
		if m := s.news.members[id]; s.news.shows(m, owners[id]) {
			add(m)
		}
	}
	for slot, c := range s.news.owners {
		next.owners[slot] = index[c.id]
	}
	for _, sh := range before.shards {
		if next.at(sh.address) == nil && before.owns(sh) == 0 && time.Since(sh.opened) < strangerLife {
			next = next.with(sh)
		}
	}
	return next
}

// tell tells of the slots that have another owner than before.
func (s *Store) tell(before, next *routes) {
	if s.cfg.Hooks.Changed == nil {
		return
	}
	changed, owned := 0, 0
	for slot := range uint16(Slots) {
		if before.owner(slot) != next.owner(slot) {
			changed++
		}
		if next.owner(slot) != nil {
			owned++
		}
	}
	if changed > 0 {
		s.cfg.Hooks.Changed(changed, owned)
	}
}
