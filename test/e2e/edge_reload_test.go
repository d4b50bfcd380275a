package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/redistest"
)

// others is the policy file of a domain that Envoy does not ask for.
const others = `
domain: others
policies:
  - endpoint_id: else
    descriptor: [{key: tenant}]
    token_bucket: {rate: 1/s, burst: 10}
    fail_mode: fail_closed
`

// policiesPage is what /policies tells.
type policiesPage struct {
	LastError string        `json:"last_error"`
	Domains   []policiesFor `json:"domains"`
}

type policiesFor struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	LastError string `json:"last_error"`
	Policies  []struct {
		EndpointID string `json:"endpoint_id"`
		Limit      string `json:"limit"`
	} `json:"policies"`
}

func (s *service) policies(t *testing.T) policiesPage {
	t.Helper()
	var page policiesPage
	if err := json.Unmarshal([]byte(fetch(t, s.admin+"/policies")), &page); err != nil {
		t.Fatal(err)
	}
	return page
}

// domain is what /policies tells of one.
func (s *service) domain(t *testing.T, name string) policiesFor {
	t.Helper()
	page := s.policies(t)
	i := slices.IndexFunc(page.Domains, func(d policiesFor) bool { return d.Name == name })
	if i < 0 {
		t.Fatalf("/policies tells of no domain %s: %+v", name, page)
	}
	return page.Domains[i]
}

// awaitVersion waits until another version of the domain than old is in force, and returns it. Metrics and /policies
// must agree on it.
func (s *service) awaitVersion(t *testing.T, domain, old string) string {
	t.Helper()
	redistest.Eventually(t, "another version of "+domain, func() bool { return s.domain(t, domain).Version != old })
	now := s.domain(t, domain).Version
	want := counts{`ratelimit_policy_info{domain="` + domain + `",version="` + now + `"}`: 1}
	got := s.metrics(t).since(counts{}, "ratelimit_policy_info")
	for series := range got {
		if !strings.Contains(series, `domain="`+domain+`"`) {
			delete(got, series)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("versions in the metrics (-want +got):\n%s", diff)
	}
	return now
}

// policyDirectory makes the mesh serve a directory of its own, and returns it.
func (m *mesh) policyDirectory(t *testing.T, files map[string]string) string {
	t.Helper()
	m.policies = t.TempDir()
	for name, text := range files {
		writeFile(t, filepath.Join(m.policies, name), text)
	}
	return m.policies
}

// larger is complete with more room in the bucket of resumint.
var larger = strings.Replace(complete, "burst: 3", "burst: 6", 1)

// A good change is enforced without a restart, and what tenants have used stays used. A bad one changes nothing in its
// domain, is told everywhere, and holds nothing else up.
func TestReload(t *testing.T) {
	m := newMesh(t, meshConfig{})
	dir := m.policyDirectory(t, map[string]string{"mesh.yaml": complete, "others.yaml": others})
	s := m.serve(t)
	tenant := m.newTenant(t)
	m.checkLimit(t, tenant, limits{minutely, "2", "60"})
	first := s.domain(t, "mesh").Version

	writeFile(t, filepath.Join(dir, "mesh.yaml"), larger)
	second := s.awaitVersion(t, "mesh", first)
	// The bucket is the same one, and has the room that it had.
	m.checkLimit(t, tenant, limits{`6, 6;w=360;name="resumint.tailor"`, "1", "300"})
	s.awaitLog(t, line{"message": "policies reloaded", "domain": "mesh", "outcome": "installed", "version": second})

	before := s.domain(t, "others").Version
	writeFile(t, filepath.Join(dir, "mesh.yaml"), strings.Replace(larger, "burst: 6", "burst: lots", 1))
	writeFile(t, filepath.Join(dir, "others.yaml"), strings.Replace(others, "burst: 10", "burst: 20", 1))
	s.awaitVersion(t, "others", before)
	m.checkStale(t, second, "mesh.yaml:11:40: ")
	m.checkLimit(t, tenant, limits{`6, 6;w=360;name="resumint.tailor"`, "0", "360"})

	writeFile(t, filepath.Join(dir, "mesh.yaml"), versioned)
	s.awaitVersion(t, "mesh", second)
	m.checkHealed(t)
	// A new policy_version is a new bucket.
	m.checkLimit(t, tenant, limits{minutely, "2", "60"})
}

// versioned is complete with new buckets for resumint.
var versioned = strings.Replace(complete, "fail_mode: fail_open\n", "fail_mode: fail_open\n    policy_version: 2\n", 1)

// checkLimit asks for resumint, and checks what is said of its bucket.
func (m *mesh) checkLimit(t *testing.T, tenant string, want limits) {
	t.Helper()
	got, _ := m.count(t, m.by(t, resumint, tenant))
	got.Limit.Reset = addSeconds(got.Limit.Reset, want.Reset, 10) // the seconds since the first request of the test
	check(t, "the limit in force", allowed(resumint, want), got)
}

// checkStale checks what is told of a bad mesh file while version stays in force.
func (m *mesh) checkStale(t *testing.T, version, position string) {
	t.Helper()
	page, d := m.service.policies(t), m.service.domain(t, "mesh")
	if d.Version != version || len(d.Policies) != 3 {
		t.Errorf("in force is version %s with %d policies, want the last good one, %s with 3", d.Version, len(d.Policies), version)
	}
	for where, text := range map[string]string{"/policies": page.LastError, "/policies of mesh": d.LastError} {
		if !strings.Contains(text, position) || !strings.Contains(text, "burst") {
			t.Errorf("%s says %q, want the position %s and the field", where, text, position)
		}
	}
	if other := m.service.domain(t, "others"); other.LastError != "" {
		t.Errorf("/policies of others says %q, want nothing", other.LastError)
	}
	want := counts{
		"ratelimit_policy_last_load_failed": 1, `ratelimit_policy_stale{domain="mesh"}`: 1,
	}
	got := m.service.metrics(t)
	if diff := cmp.Diff(want, got.since(counts{}, "ratelimit_policy_last_load_failed", "ratelimit_policy_stale")); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if got.sum("ratelimit_policy_loads_total", `domain="mesh"`, `outcome="kept"`) < 1 {
		t.Error("no load was counted as one that kept the old version")
	}
	m.service.awaitLog(t, line{"level": "error", "message": "policies reloaded", "domain": "mesh", "outcome": "kept"})
	if l := m.service.awaitLog(t, line{"level": "error", "message": "policy fault"}); !strings.Contains(l["fault"].(string), position) {
		t.Errorf("the log says %v, want the position %s", l, position)
	}
}

func (m *mesh) checkHealed(t *testing.T) {
	t.Helper()
	if page := m.service.policies(t); page.LastError != "" {
		t.Errorf("/policies still says %q", page.LastError)
	}
	bad := m.service.metrics(t).since(counts{}, "ratelimit_policy_last_load_failed", "ratelimit_policy_stale")
	if diff := cmp.Diff(counts{}, bad); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// Kubernetes changes a ConfigMap by swapping a link to a directory; the files that the service is told of are links
// through it, and do not change.
func TestReload_ConfigMap(t *testing.T) {
	m := newMesh(t, meshConfig{})
	m.policies = t.TempDir()
	swap := func(name string, files map[string]string) {
		t.Helper()
		dir := filepath.Join(m.policies, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range files {
			writeFile(t, filepath.Join(dir, file), text)
		}
		next := filepath.Join(m.policies, "..data_tmp")
		if err := os.Symlink(name, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(m.policies, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	swap("..2026_01", map[string]string{"mesh.yaml": complete})
	if err := os.Symlink(filepath.Join("..data", "mesh.yaml"), filepath.Join(m.policies, "mesh.yaml")); err != nil {
		t.Fatal(err)
	}
	s := m.serve(t)
	tenant := m.newTenant(t)
	m.checkLimit(t, tenant, limits{minutely, "2", "60"})
	first := s.domain(t, "mesh").Version

	start := time.Now()
	swap("..2026_02", map[string]string{"mesh.yaml": larger})
	second := s.awaitVersion(t, "mesh", first)
	m.checkLimit(t, tenant, limits{`6, 6;w=360;name="resumint.tailor"`, "1", "300"})

	swap("..2026_03", map[string]string{"mesh.yaml": strings.Replace(complete, "burst: 3", "burst: -3", 1)})
	redistest.Eventually(t, "the bad swap to be told of", func() bool { return s.policies(t).LastError != "" })
	if got := s.domain(t, "mesh").Version; got != second {
		t.Errorf("version %s is in force, want the last good one, %s", got, second)
	}
	swap("..2026_04", map[string]string{"mesh.yaml": complete})
	if got := s.awaitVersion(t, "mesh", second); got != first {
		t.Errorf("version %s is in force, want that of the same content as the first, %s", got, first)
	}
	m.checkHealed(t)
	// The service is told of each swap, which takes a tenth of a second. Looking at the files every 10 s, which it does
	// as well, would take half a minute for three.
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("three swaps took %v to be noticed, want well under that of the rechecks", took)
	}
}

// SIGHUP reads the files again although nothing about them has changed.
func TestReload_Hangup(t *testing.T) {
	m := newMesh(t, meshConfig{Policies: complete})
	s := m.serve(t)
	version := s.domain(t, "mesh").Version
	const unchanged = `outcome="unchanged"`
	for range 2 {
		before := s.metrics(t).sum("ratelimit_policy_loads_total", unchanged)
		if err := s.process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.awaitMetric(t, before+1, "ratelimit_policy_loads_total", unchanged)
	}
	if got := s.domain(t, "mesh").Version; got != version {
		t.Errorf("version %s is in force, want %s as before", got, version)
	}
	m.checkLeft(t, pdftalk, m.newTenant(t), "999")
}

// Nobody is denied, and nothing is decided by half a file, while policies are replaced under load.
func TestReload_UnderLoad(t *testing.T) {
	m := newMesh(t, meshConfig{Policies: roomy})
	s := m.serve(t)
	m.awaitHealthy(t)
	stop := make(chan struct{})
	var all sync.WaitGroup
	defer all.Wait()
	defer close(stop)
	for _, e := range endpoints {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got, _, err := m.send(t.Context(), m.newPath(e), question{})
				if err != nil || got.Status != 200 || got.Limit.Remaining == "" {
					t.Errorf("%s while policies are replaced: %+v, %v", e.id, got, err)
					return
				}
			}
		})
	}
	version := s.domain(t, "mesh").Version
	for i := range 8 {
		text := strings.Replace(roomy, "limit: 1000000", "limit: "+[]string{"900000", "1000000"}[i%2], 1)
		writeFile(t, m.policies, text)
		version = s.awaitVersion(t, "mesh", version)
	}
}
