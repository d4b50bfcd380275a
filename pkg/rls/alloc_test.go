//go:build !race

package rls

import "testing"

// The race detector makes sync.Pool forget on purpose, so allocations are counted without it: the request's text, the
// bucket's key and the answer's bytes, which are ours, and two objects in which gRPC wants the answer wrapped.
func TestServer_AllocatesLittle(t *testing.T) {
	request := wired(t)
	if n := testing.AllocsPerRun(1000, request); n > 5 {
		t.Errorf("a request allocates %v objects, want at most 5", n)
	}
}
