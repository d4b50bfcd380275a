package policy

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Source keeps the Set of a file or directory. Load it once, ask Current for every request, and let Watch or a signal
// handler call Reload.
type Source struct {
	path    string
	cfg     SourceConfig
	current atomic.Pointer[Set]

	// turn makes loads one at a time, their callbacks included, so that reports arrive in order.
	turn sync.Mutex
	// seen is what the files looked like at the last load, empty if they must be read again in any case.
	seen snapshot

	mu     sync.Mutex // guards status
	status Status
}

// SourceConfig tells a Source when to look and whom to tell.
type SourceConfig struct {
	// OnReload is called after every Reload, once at a time, with the Set of the report already in force; Load does
	// not call it. It must not call Load or Reload. Default: nobody is told.
	OnReload func(Report)
	// Debounce is how long a change must be quiet before Watch reloads, and a tenth of how long it waits at most
	// while changes go on. Default: 100ms.
	Debounce time.Duration
	// Recheck is how often Watch compares the files' identities, sizes and times with those it last read, which
	// finds what a notification missed. Default: 10s.
	Recheck time.Duration
}

// Validate reports every field that is out of range.
func (c SourceConfig) Validate() error {
	var errs []error
	if c.Debounce < 0 {
		errs = append(errs, fmt.Errorf("policy: debounce is %v, must be >= 0", c.Debounce))
	}
	if c.Recheck < 0 {
		errs = append(errs, fmt.Errorf("policy: recheck is %v, must be >= 0", c.Recheck))
	}
	return errors.Join(errs...)
}

// NewSource returns a Source that has loaded nothing yet. Path is a file or a directory, as for Load.
func NewSource(path string, cfg SourceConfig) (*Source, error) {
	if path == "" {
		return nil, errors.New("policy: path is empty")
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Debounce == 0 {
		cfg.Debounce = 100 * time.Millisecond
	}
	if cfg.Recheck == 0 {
		cfg.Recheck = 10 * time.Second
	}
	s := &Source{path: path, cfg: cfg, status: Status{Path: path}}
	s.current.Store(newSet(nil))
	return s, nil
}

// Current returns the Set in force. It is never nil; it has no domain before the first Load.
func (s *Source) Current() *Set { return s.current.Load() }

// Load reads the policies for the first time. Any fault anywhere installs nothing: a service that starts without a
// part of its policies leaves that part unmetered. The error is of type Faults.
func (s *Source) Load() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	now := time.Now()
	a := read(s.path, now)
	if err := a.all().err(); err != nil {
		s.refuse(a, now)
		return err
	}
	s.install(a, now)
	return nil
}

// refuse puts nothing in force, and notes why.
func (s *Source) refuse(a assembly, now time.Time) {
	old := s.Current()
	r := Report{At: now, Version: old.version, Faults: a.all()}
	for _, name := range a.names(old) {
		d := DomainReport{Name: name, Outcome: Rejected, Faults: r.Faults}
		if domain := old.Domain(name); domain != nil {
			d.Outcome, d.Version = Kept, domain.version
		}
		r.Domains = append(r.Domains, d)
	}
	s.seen = a.seen
	s.note(r)
}

// Reload reads the policies again. A domain is replaced as a whole or not at all: one with a fault anywhere in its
// files keeps its last good version, while other domains take their new one.
//
// While a file's content cannot be told, nothing is lost that may be in it: no domain disappears, and none that came
// from that file, or that would lose an endpoint, changes.
func (s *Source) Reload() Report {
	s.turn.Lock()
	defer s.turn.Unlock()
	now := time.Now()
	r := s.install(read(s.path, now), now)
	if s.cfg.OnReload != nil {
		s.cfg.OnReload(r)
	}
	return r
}

// install puts in force what can be of a.
func (s *Source) install(a assembly, now time.Time) Report {
	r := Report{At: now, Faults: a.all()}
	old, next := s.Current(), map[string]*Domain{}
	for _, name := range a.names(old) {
		d, outcome := a.settle(name, old.Domain(name))
		report := DomainReport{Name: name, Outcome: outcome, Faults: a.reasons(name, outcome)}
		if d != nil {
			next[name], report.Version = d, d.version
		}
		r.Domains = append(r.Domains, report)
	}
	set := newSet(next)
	r.Version = set.version
	s.current.Store(set)
	s.seen = a.seen
	if a.unread() {
		s.seen = snapshot{}
	}
	s.note(r)
	return r
}
