package main

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/honestlimit/ratelimit/pkg/failure"
	"github.com/honestlimit/ratelimit/pkg/policy"
)

// newAdmin makes the HTTP server for operators. It changes nothing and shows no identity and no credential.
func (s *service) newAdmin() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.HandleFunc("GET /policies", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.policiesPage()) })
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.statePage()) })
	s.admin = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
}

// readyz depends on the policies and on whether the service drains, never on the store: what happens while the store
// is away is what the service is for.
func (s *service) readyz(w http.ResponseWriter, _ *http.Request) {
	if !s.serving.Load() {
		plain(w, http.StatusServiceUnavailable, "draining")
		return
	}
	plain(w, http.StatusOK, "ready")
}

func plain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n")) // a client that hung up needs no answer
}

func writeJSON(w http.ResponseWriter, page any) {
	text, err := json.MarshalIndent(page, "", "  ")
	if err != nil {
		plain(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // a client that hung up needs no answer
}

// policiesPage is what /policies shows.
type policiesPage struct {
	Path       string       `json:"path"`
	Version    string       `json:"version"`
	CheckedAt  time.Time    `json:"checked_at"`
	ChangedAt  time.Time    `json:"changed_at,omitzero"`
	LastError  string       `json:"last_error,omitempty"`
	WatchError string       `json:"watch_error,omitempty"`
	Domains    []domainPage `json:"domains"`
}

type domainPage struct {
	Name       string       `json:"name"`
	Version    string       `json:"version,omitempty"`
	LoadedAt   time.Time    `json:"loaded_at,omitzero"`
	AgeSeconds float64      `json:"age_seconds"`
	LastError  string       `json:"last_error,omitempty"`
	Policies   []policyPage `json:"policies"`
}

type policyPage struct {
	EndpointID string `json:"endpoint_id"`
	Descriptor string `json:"descriptor"`
	Algorithm  string `json:"algorithm"`
	Limit      string `json:"limit"`
	FailMode   string `json:"fail_mode"`
	Fallback   string `json:"fallback_rate_per_process,omitempty"`
	MinCost    int64  `json:"min_cost"`
	MaxCost    int64  `json:"max_cost"`
	Version    uint32 `json:"policy_version"`
	File       string `json:"file"`
	Line       int    `json:"line"`
}

func (s *service) policiesPage() policiesPage {
	status, set := s.policies.Status(), s.policies.Current()
	page := policiesPage{
		Path: status.Path, Version: status.Version, CheckedAt: status.CheckedAt, ChangedAt: status.ChangedAt,
		LastError: status.LastError, WatchError: status.WatchError, Domains: []domainPage{},
	}
	for _, d := range status.Domains {
		domain := domainPage{
			Name: d.Name, Version: d.Version, LoadedAt: d.LoadedAt, LastError: d.LastError, Policies: []policyPage{},
		}
		if in := set.Domain(d.Name); in != nil {
			domain.AgeSeconds = time.Since(d.LoadedAt).Seconds()
			for _, p := range in.Policies() {
				domain.Policies = append(domain.Policies, pageOf(p))
			}
		}
		page.Domains = append(page.Domains, domain)
	}
	return page
}

func pageOf(p *policy.Policy) policyPage {
	page := policyPage{
		EndpointID: p.Endpoint.ID, Descriptor: p.Pattern.String(), Algorithm: p.Limit.Algorithm.String(),
		Limit: describeLimit(p.Limit), FailMode: p.Endpoint.FailMode.String(), MinCost: p.MinCost, MaxCost: p.MaxCost,
		Version: p.Version, File: p.File, Line: p.Line,
	}
	if p.Endpoint.Fallback.Micro > 0 {
		page.Fallback = describeRate(p.Endpoint.Fallback)
	}
	return page
}

// statePage is what /state shows.
type statePage struct {
	Serving  bool         `json:"serving"`
	Store    string       `json:"store"`
	InFlight int          `json:"decisions_in_flight"`
	Redis    *redisPage   `json:"redis,omitempty"`
	Memory   *memoryPage  `json:"memory,omitempty"`
	Breaker  *breakerPage `json:"breaker,omitempty"`
}

type redisPage struct {
	Address   string     `json:"address"`
	Lanes     int        `json:"lanes"`
	Connected int        `json:"lanes_connected"`
	Queued    int        `json:"queued"`
	InFlight  int        `json:"in_flight"`
	DenyCache denyPage   `json:"deny_cache"`
	LastError *errorPage `json:"last_error,omitempty"`
}

type denyPage struct {
	Entries int    `json:"entries"`
	Hits    uint64 `json:"hits"`
	Kept    uint64 `json:"kept"`
	Evicted uint64 `json:"evicted"`
}

type errorPage struct {
	Cause string    `json:"cause"`
	Text  string    `json:"text,omitempty"`
	At    time.Time `json:"at"`
}

type memoryPage struct {
	Buckets int    `json:"buckets"`
	Expired uint64 `json:"expired"`
	Evicted uint64 `json:"evicted"`
}

type breakerPage struct {
	State     string     `json:"state"`
	Since     time.Time  `json:"since"`
	Failures  int        `json:"failures"`
	LastError *errorPage `json:"last_failure,omitempty"`
	OpenUntil time.Time  `json:"open_until,omitzero"`
	Opened    uint64     `json:"opened"`
}

func (s *service) statePage() statePage {
	page := statePage{Serving: s.serving.Load(), Store: s.backing.name, InFlight: s.guard.InFlight()}
	if s.backing.redis != nil {
		now := s.backing.redis()
		page.Redis = &redisPage{
			Address: now.Address, Lanes: now.Lanes, Connected: now.Connected, Queued: now.Queued,
			InFlight: now.InFlight, DenyCache: denyPage(now.DenyCache),
			LastError: errorOf(now.LastError.Cause, now.LastError.Text, now.LastError.At),
		}
	}
	if s.backing.memory != nil {
		now := s.backing.memory()
		page.Memory = &memoryPage{Buckets: now.Buckets, Expired: now.Expired, Evicted: now.Evicted}
	}
	if s.backing.breaker != nil {
		now := s.backing.breaker.Snapshot()
		page.Breaker = &breakerPage{
			State: now.State.String(), Since: now.Since, Failures: now.Failures, OpenUntil: now.OpenUntil,
			Opened: now.Opened, LastError: errorOf(now.LastCause, "", now.LastFailure),
		}
	}
	return page
}

// errorOf is nil if there was none.
func errorOf(cause failure.Cause, text string, at time.Time) *errorPage {
	if cause == failure.CauseNone {
		return nil
	}
	return &errorPage{Cause: cause.String(), Text: text, At: at}
}
