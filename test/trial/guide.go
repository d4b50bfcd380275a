package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// tokenLife is how long the tokens of one trial are good for.
const tokenLife = 24 * time.Hour

// lesson is one thing to try, and what there is to see.
type lesson struct {
	see     string
	command string
}

// lessons writes the tenants' tokens and returns the lines to try, in an order in which each holds.
func (s *stack) lessons() ([]lesson, error) {
	acme, err := s.headerFile("acme")
	if err != nil {
		return nil, err
	}
	globex, err := s.headerFile("globex")
	if err != nil {
		return nil, err
	}
	url := "http://" + s.ports.Edge
	pages := func(who string) string {
		return fmt.Sprintf("curl -i %s/pdftalk/ingest -H @%s -H 'x-pages: 8'", url, who)
	}
	tailor := func(n int) string {
		const once = "curl -s -o /dev/null -w '%{http_code} '"
		return fmt.Sprintf("for i in $(seq %d); do %s %s/resumint/tailor; done; echo", n, once, url)
	}
	store, pid := s.store.Name(), s.store.PID()
	return []lesson{
		{"acme has 20 pages a minute. 200, 200, and the third time 429 with Retry-After", pages(acme)},
		{"globex has 20 pages of its own: 200", pages(globex)},
		{"Resumint, without a token: the ten of the bucket 200, and then mostly 429", tailor(20)},
		{store + " freezes, PDFTalk fails closed: 503", fmt.Sprintf("kill -STOP %d; %s", pid, pages(globex))},
		{"Resumint fails open, and stays metered: a few 200, then 429", tailor(12)},
		{
			"and heals by itself: after a moment 200 with x-ratelimit headers",
			fmt.Sprintf("kill -CONT %d; sleep 2; curl -i %s/resumint/tailor", pid, url),
		},
	}, nil
}

// headerFile writes a file that curl takes its authorization header from.
func (s *stack) headerFile(tenant string) (string, error) {
	text, err := s.issuer.Token(tenant, tokenLife)
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.cfg.Dir, tenant+".header")
	if err := os.WriteFile(path, []byte("authorization: Bearer "+text+"\n"), 0o600); err != nil {
		return "", err
	}
	return path, nil
}

// guide is what a person reads once everything runs.
func (s *stack) guide(lessons []lesson) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nPDFTalk and Resumint are behind Envoy at http://%s. The service keeps its limits in %s.\n",
		s.ports.Edge, s.keeper())
	fmt.Fprintf(&b, "Its state: http://%s/state, its metrics: http://%[1]s/metrics, its log: %s\n",
		s.ports.Admin, s.logFile("ratelimit"))
	fmt.Fprintln(&b, "\nTry these in another terminal:")
	for i, l := range lessons {
		fmt.Fprintf(&b, "\n%d. %s\n   %s\n", i+1, l.see, l.command)
	}
	fmt.Fprintln(&b, "\nEvery decision shows below. Ctrl-C stops everything.")
	return b.String()
}

func (s *stack) keeper() string {
	if s.cfg.Redis == "" {
		return "its own memory"
	}
	return "Redis at " + s.ports.Redis
}
