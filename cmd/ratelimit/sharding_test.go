package main

import (
	"strings"
	"testing"
)

const shardedMesh = `domain: mesh
shard_by: [tenant]
policies:
  - endpoint_id: tenant.path
    descriptor: [{key: tenant}, {key: path}]
    token_bucket: {rate: 10/s}
    fail_mode: fail_closed
  - endpoint_id: everybody
    descriptor: [{key: path}]
    token_bucket: {rate: 1000/s}
    fail_mode: fail_closed
`

func TestCheck_ShowsWhatSharesASlot(t *testing.T) {
	path := policyFile(t, shardedMesh)
	got := ratelimit(t, "check", path)
	if got.code != 0 || got.errOut != "" {
		t.Fatalf("exit code %d, stderr %q", got.code, got.errOut)
	}
	for _, want := range []string{
		"mesh is sharded by tenant: ",
		"note: " + path + `:8: everybody stays in slots of its own: its descriptor has no entry "tenant"` + "\n",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("check does not say %q:\n%s", want, got.out)
		}
	}
	if strings.Contains(got.out, "tenant.path stays") {
		t.Errorf("check has a note about a policy that shares the slot:\n%s", got.out)
	}
	if got := ratelimit(t, "check", policyFile(t, mesh)); strings.Contains(got.out, "slot") {
		t.Errorf("check speaks of slots without shard_by:\n%s", got.out)
	}
}

func TestExplain_ShowsWhatSharesASlot(t *testing.T) {
	policies := policyFile(t, shardedMesh)
	for entries, want := range map[string]string{
		"tenant=acme path=/a": "shared with all buckets that agree in tenant\n",
		"path=/a":             `of its own: its descriptor has no entry "tenant"` + "\n",
	} {
		args := append([]string{"explain", "--policies", policies, "--domain", "mesh"}, strings.Fields(entries)...)
		if got := ratelimit(t, args...); got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("%s: exit code %d, explanation does not say %q:\n%s", entries, got.code, want, got.out)
		}
	}
}
