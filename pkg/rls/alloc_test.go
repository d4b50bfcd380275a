//go:build !race

package rls

import "testing"

// The race detector makes sync.Pool forget on purpose, so allocations are counted without it: the request's text, the
// bucket's key, what gRPC hands in and out, and the buffer of the answer.
func TestServer_AllocatesLittle(t *testing.T) {
	request := wired(t)
	if n := testing.AllocsPerRun(1000, request); n > 6 {
		t.Errorf("a request allocates %v objects, want at most 6", n)
	}
}
