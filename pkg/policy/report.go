package policy

import (
	"fmt"
	"time"
)

// Report tells what one load changed.
type Report struct {
	// At is when the files were read.
	At time.Time
	// Version is that of the Set in force afterwards.
	Version string
	// Domains are all domains that were in force before or that the files mention, by name.
	Domains []DomainReport
	// Faults are all faults found, those that belong to no known domain included.
	Faults Faults
}

// Err returns Faults as an error, nil if there are none.
func (r Report) Err() error { return r.Faults.err() }

// Changed tells whether another version of anything is in force.
func (r Report) Changed() bool {
	for _, d := range r.Domains {
		if d.Outcome == Installed || d.Outcome == Removed {
			return true
		}
	}
	return false
}

// DomainReport tells what one load did to one domain.
type DomainReport struct {
	Name    string
	Outcome Outcome
	// Version is the one in force, "" for none.
	Version string
	// Faults are why the domain did not take what the files say; they are not empty for Kept and Rejected only.
	Faults Faults
}

// Outcome says what one load did to one domain.
type Outcome uint8

// The outcomes.
const (
	// Unchanged says that the files enforce what was in force already.
	Unchanged Outcome = 1 + iota
	// Installed says that a new domain, or a new version, came into force.
	Installed
	// Kept says that the last good version stays in force because of faults.
	Kept
	// Rejected says that a new domain did not come into force because of faults.
	Rejected
	// Removed says that no file mentions the domain any more.
	Removed
)

// String names the outcome as a metric's label does.
func (o Outcome) String() string {
	switch o {
	case Unchanged:
		return "unchanged"
	case Installed:
		return "installed"
	case Kept:
		return "kept"
	case Rejected:
		return "rejected"
	case Removed:
		return "removed"
	default:
		return fmt.Sprintf("outcome(%d)", uint8(o))
	}
}
