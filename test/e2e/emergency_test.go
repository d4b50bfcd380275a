package e2e_test

import (
	"testing"
	"time"
)

// denied is a fail_open request that the emergency limiter denies, with the time until it would admit one.
func denied(e endpoint, cause, retryAfter string) seen {
	return seen{
		Status: 429, Body: bodyLimited, ContentType: "application/json",
		RetryAfter: retryAfter, Decision: emergencyLimit, Limited: "true",
		Proof: proof{emergencyLimit, cause, e.id},
		Counted: counts{
			decided(e.id, emergencyLimit, cause, "over_limit"): 1,
			emergency(e.id, "denied"):                          1,
		},
	}
}

// A fail_open endpoint stays metered: its process admits what the fallback rate says, of all tenants together, for as
// long as the store is away, whether the store's failure or the breaker is why.
func TestEmergency_Exhausted(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
		// after is what a request finds once the fault has had its effect.
		reason, cause string
	}{
		{"by the store's failure", []string{neverOpens}, connection, "dial"},
		{"by the breaker", nil, circuit, "breaker_open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMesh(t, meshConfig{Policies: tight})
			st := newStore(t, m.secrets)
			s := m.serve(t, append(st.at(st.URL()), c.flags...)...)
			m.awaitAllowed(t, pdftalk)
			st.Kill()
			// fail_closed requests find out, and spend no emergency token.
			m.awaitCause(t, c.cause)
			start := time.Now()
			check(t, "the first", admittedWithoutStore(resumint, c.reason, c.cause), m.watch(t, resumint, question{}))
			for _, tenant := range []string{m.tenant, m.newTenant(t)} {
				got := m.watch(t, resumint, question{Tenant: tenant})
				// One a minute; a machine that needs whole seconds for this has waited so much of it.
				got.RetryAfter = addSeconds(got.RetryAfter, "60", int(time.Since(start)/time.Second))
				check(t, "the next", denied(resumint, c.cause, "60"), got)
			}
			s.awaitLog(t, line{
				"message": "request denied", "endpoint_id": resumint.id, "reason": emergencyLimit,
			})
		})
	}
}
