package e2e_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/redistest"
)

// bodyEmergency is what Envoy answers for a request that it has metered itself.
const bodyEmergency = `{"detail": "rate limit exceeded", "decision": "EMERGENCY_LOCAL_LIMIT"}`

// What requests come to that nobody decided: nothing is said of limits, and nothing counted.
func refusedUndecided() seen {
	return seen{
		Status: 503, Body: bodyUnavailable, ContentType: "application/json", RetryAfter: "1",
		Proof: proof{none, none, none},
	}
}

func passedUndecided(e endpoint) seen {
	return seen{Status: 200, Body: e.body, ContentType: "application/json", Reached: true, Proof: proof{none, none, none}}
}

func meteredUndecided() seen {
	return seen{
		Status: 429, Body: bodyEmergency, ContentType: "application/json", RetryAfter: "1",
		Proof: proof{none, none, none},
	}
}

// by is a request to e by a tenant.
func (m *mesh) by(t *testing.T, e endpoint, tenant string) errand {
	t.Helper()
	return errand{Path: e.path, Headers: m.as(t, tenant)}
}

// checkUndecided asks every route while the service does not answer Envoy.
func (m *mesh) checkUndecided(t *testing.T) {
	t.Helper()
	closed := route{Flags: "RLSE", Details: "rate_limiter_error"}
	for _, e := range []endpoint{pdftalk, metered} {
		got, where, _ := m.run(t, m.by(t, e, m.tenant))
		check(t, e.path, refusedUndecided(), got)
		where.Name = ""
		if diff := cmp.Diff(closed, where); diff != "" {
			t.Errorf("%s in the access log (-want +got):\n%s", e.path, diff)
		}
	}
	m.awaitPass(t)
	m.checkMetered(t)
	m.checkCrowdMetered(t)
}

// awaitPass waits until Envoy's own bucket admits a request, which it does by the second.
func (m *mesh) awaitPass(t *testing.T) {
	t.Helper()
	redistest.Eventually(t, "Envoy to admit a request by itself", func() bool {
		got, _, _ := m.run(t, m.by(t, resumint, m.tenant))
		if got.Status == 429 {
			return false
		}
		check(t, "admitted by Envoy", passedUndecided(resumint), got)
		return true
	})
}

// The bucket of envoy.yaml [5].
const (
	meteredBurst  = 2
	meteredRefill = 2 // a second
)

// checkMetered asks until Envoy has refused often, each time as another tenant: there is one bucket for all.
func (m *mesh) checkMetered(t *testing.T) {
	t.Helper()
	const refusals = 12
	start, passed, refused := time.Now(), 0, 0
	for refused < refusals {
		got, where, _ := m.run(t, m.by(t, resumint, m.newTenant(t)))
		if got.Status == 200 {
			check(t, "admitted by Envoy", passedUndecided(resumint), got)
			passed++
			continue
		}
		refused++
		check(t, "refused by Envoy", meteredUndecided(), got)
		if diff := cmp.Diff(route{resumint.service, "RL", "local_rate_limited"}, where); diff != "" {
			t.Errorf("refused by Envoy, in the access log (-want +got):\n%s", diff)
		}
		if t.Failed() {
			return
		}
	}
	if most := atMostMetered(time.Since(start)); passed > most {
		t.Errorf("Envoy admitted %d requests by itself, want at most %d", passed, most)
	}
}

// checkCrowdMetered asks with many at once.
func (m *mesh) checkCrowdMetered(t *testing.T) {
	t.Helper()
	const people = 60
	before, start := m.backends[resumint.service].Calls().Requests, time.Now()
	var refused atomic.Int64
	var all sync.WaitGroup
	for range people {
		e := m.by(t, resumint, m.newTenant(t))
		all.Go(func() {
			got, _, _, err := e.send(t.Context(), m.edge, m.newMark())
			switch {
			case err != nil:
				t.Error(err)
			case got.Status == 429 && got.Body == bodyEmergency:
				refused.Add(1)
			case got.Status != 200:
				t.Errorf("one of a crowd is answered %+v", got)
			}
		})
	}
	all.Wait()
	reached := m.backends[resumint.service].Calls().Requests - before
	if most := atMostMetered(time.Since(start)); int(reached) > most {
		t.Errorf("%d of %d requests reached the backend, want at most %d", reached, people, most)
	}
	if got := reached + refused.Load(); got != people {
		t.Errorf("%d requests were admitted or refused, want all %d", got, people)
	}
}

// atMostMetered is what Envoy's bucket can have given out in that time.
func atMostMetered(in time.Duration) int {
	return meteredBurst + meteredRefill*(1+int(in/time.Second))
}

// A killed service is noticed at once: fail_closed is refused, fail_open metered by Envoy alone. A new process goes on
// from what the store remembers.
func TestServiceKilled(t *testing.T) {
	m := newMesh(t, meshConfig{Policies: complete, Patience: productPatience})
	st := newStore(t, m.secrets)
	s := m.serveMortal(t, st.at(st.URL())...)
	for _, e := range endpoints {
		m.awaitAllowed(t, e)
	}
	tenant := m.newTenant(t)
	for _, left := range []string{"2", "1"} {
		m.checkLeft(t, resumint, tenant, left)
	}
	if err := s.process.Kill(); err != nil {
		t.Fatal(err)
	}
	m.checkUndecided(t)
	m.serve(t, st.at(st.URL())...)
	m.checkLeft(t, resumint, tenant, "0")
	got, _ := m.count(t, m.by(t, resumint, tenant))
	if got.Status != 429 || got.Decision != "RATE_LIMITED" || got.Reached {
		t.Errorf("the tenant's fourth request comes to %+v, want 429", got)
	}
	m.checkDecidedFreely(t)
}

// checkLeft asks once, and checks that the store admits and what it says is left.
func (m *mesh) checkLeft(t *testing.T, e endpoint, tenant, left string) {
	t.Helper()
	got, where := m.count(t, m.by(t, e, tenant))
	want := allowed(e, limits{got.Limit.Limit, left, got.Limit.Reset})
	check(t, e.id+" decided by the store", want, got)
	if got.Limit.Limit == "" || where.Details != "via_upstream" {
		t.Errorf("%s: limit %q, %+v in the access log", e.id, got.Limit.Limit, where)
	}
}

// checkDecidedFreely asks for more than Envoy's own bucket would ever admit.
func (m *mesh) checkDecidedFreely(t *testing.T) {
	t.Helper()
	for range 4 * meteredBurst {
		m.checkLeft(t, resumint, m.newTenant(t), "2")
	}
}

// A frozen service keeps its connections and says nothing. Each request waits as long as Envoy's patience lasts, until
// the health check has noticed; then none waits. Thawed, the service goes on.
func TestServiceFrozen(t *testing.T) {
	m := newMesh(t, meshConfig{Policies: complete, Patience: productPatience})
	s := m.serve(t)
	tenant := m.newTenant(t)
	m.checkLeft(t, pdftalk, tenant, "999")
	if err := s.process.Freeze(); err != nil {
		t.Fatal(err)
	}
	got, where, _ := m.run(t, m.by(t, pdftalk, tenant))
	check(t, "fail_closed", refusedUndecided(), got)
	if want := (route{pdftalk.service, "RLSE", "rate_limiter_error"}); where != want {
		t.Errorf("fail_closed in the access log: %+v, want %+v", where, want)
	}
	m.awaitPass(t)
	redistest.Eventually(t, "Envoy to notice", func() bool { return m.stat(t, healthyReplicas) == 0 })
	asked := m.stat(t, questions)
	m.checkUndecided(t)
	if got := m.stat(t, questions); got != asked {
		t.Errorf("Envoy asked a service %d times that it knows to be sick", got-asked)
	}
	if err := s.process.Thaw(); err != nil {
		t.Fatal(err)
	}
	m.awaitDecided(t)
	m.checkLeft(t, pdftalk, m.newTenant(t), "999")
	m.checkDecidedFreely(t)
}

// Envoy's own numbers.
const (
	healthyReplicas = "cluster.ratelimit.membership_healthy"
	questions       = "cluster.ratelimit.upstream_rq_total"
	turnedAway      = "cluster.ratelimit.upstream_cx_none_healthy"
)
