package preflight

import (
	"slices"
	"time"
)

// schema is raised when a field of Report changes its meaning.
const schema = 1

// Report is what a run found.
type Report struct {
	// Schema is the version of this form, 1.
	Schema int `json:"schema"`
	// Setup is how the servers stand to each other.
	Setup Setup `json:"setup"`
	// At is when the run ended.
	At time.Time `json:"at"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
	// Servers are the addresses of all servers that were found, as they announce themselves.
	Servers []string `json:"servers"`
	// Worst is the status of the worst result.
	Worst Status `json:"worst"`
	// Results are in the order of Catalogue, at least one for each check that applies.
	Results []Result `json:"results"`
}

func newReport(f *facts, took time.Duration) Report {
	r := Report{
		Schema: schema, Setup: f.setup, At: f.now, Seconds: took.Seconds(), Worst: Pass, Results: judge(f),
	}
	for _, s := range f.servers() {
		r.Servers = append(r.Servers, clean(s.address))
	}
	slices.Sort(r.Servers)
	for _, result := range r.Results {
		r.Worst = max(r.Worst, result.Status)
	}
	return r
}

// Count is the number of results of that status.
func (r Report) Count(s Status) int {
	n := 0
	for _, result := range r.Results {
		if result.Status == s {
			n++
		}
	}
	return n
}
