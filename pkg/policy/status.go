package policy

import (
	"maps"
	"slices"
	"time"
)

// Status is a snapshot of a Source, for the admin port and metrics.
type Status struct {
	// Path is where the policies come from.
	Path string
	// Version is that of the Set in force, "" before the first load.
	Version string
	// CheckedAt is when the files were last read, ChangedAt when that last changed what is in force; zero for never.
	CheckedAt, ChangedAt time.Time
	// LastError holds the faults of the last load, one a line; "" if it had none.
	LastError string
	// WatchError is why changes are noticed by rechecks only; "" while the file system's notifications work.
	WatchError string
	// Domains are the domains in force and those the last load rejected, by name.
	Domains []DomainStatus
}

// DomainStatus is a snapshot of one domain.
type DomainStatus struct {
	Name string
	// Version and LoadedAt tell which version is in force and since when; zero for a rejected domain.
	Version  string
	LoadedAt time.Time
	// Policies is the number of policies in force.
	Policies int
	// LastError holds the faults because of which the last load did not replace the domain; "" if it had none.
	LastError string
	// Loads counts the loads by what they did to the domain.
	Loads map[Outcome]uint64
}

// Status returns a snapshot.
func (s *Source) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.status
	status.Domains = slices.Clone(status.Domains)
	for i := range status.Domains {
		status.Domains[i].Loads = maps.Clone(status.Domains[i].Loads)
	}
	return status
}

// note keeps what a load did.
func (s *Source) note(r Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.CheckedAt, s.status.Version, s.status.LastError = r.At, r.Version, ""
	if r.Changed() {
		s.status.ChangedAt = r.At
	}
	if err := r.Err(); err != nil {
		s.status.LastError = err.Error()
	}
	before := map[string]map[Outcome]uint64{}
	for _, d := range s.status.Domains {
		before[d.Name] = d.Loads
	}
	s.status.Domains = nil
	for _, d := range r.Domains {
		if d.Outcome != Removed {
			s.status.Domains = append(s.status.Domains, s.domainStatus(d, before[d.Name]))
		}
	}
}

func (s *Source) domainStatus(r DomainReport, loads map[Outcome]uint64) DomainStatus {
	d := DomainStatus{Name: r.Name, Version: r.Version, Loads: loads}
	if d.Loads == nil {
		d.Loads = map[Outcome]uint64{}
	}
	d.Loads[r.Outcome]++
	if err := r.Faults.err(); err != nil {
		d.LastError = err.Error()
	}
	if domain := s.Current().Domain(r.Name); domain != nil {
		d.LoadedAt, d.Policies = domain.loadedAt, len(domain.policies)
	}
	return d
}

func (s *Source) noteWatch(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.WatchError = ""
	if err != nil {
		s.status.WatchError = err.Error()
	}
}
