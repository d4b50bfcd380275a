package main

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

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
