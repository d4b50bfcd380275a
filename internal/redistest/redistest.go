// Package redistest gives tests a real Redis, and the ways in which a real Redis fails: servers that can be frozen,
// killed and restarted (Server), a server that says whatever the test wants (Fake), a network that delays, drips,
// swallows or cuts (Proxy), whole sets of servers (Sentinel, Cluster), and certificates (Certificates).
//
// It knows nothing of rate limiting. Everything it starts is stopped by the test's Cleanup. All types are safe for
// concurrent use.
package redistest

import (
	"testing"
	"time"
)

// Patience is how long a helper waits for something that a healthy machine does in milliseconds. It is no bound that
// a test asserts: only a broken test reaches it.
const Patience = 20 * time.Second

// Eventually waits until condition holds, and fails the test if it does not within Patience. The condition is asked
// from the test's goroutine, every few milliseconds.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	timeout := time.NewTimer(Patience)
	defer timeout.Stop()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for !condition() {
		select {
		case <-again.C:
		case <-timeout.C:
			t.Fatalf("waited %v in vain: %s", Patience, what)
		}
	}
}
