package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/topology"
)

// TestServe_DecidesInACluster starts from one node of a Cluster, loses a master, and decides everywhere again: at once
// for the slots that lost nothing, and at the next master for the others.
func TestServe_DecidesInACluster(t *testing.T) {
	secrets := topology.NewSecrets()
	set := redistest.Cluster(t, topology.Config{Secrets: secrets})
	login := set.ServiceLogin()
	s := startServe(t, []string{passwordVariable + "=" + login.Password}, "--policies", policyFile(t, mesh),
		"--redis", "cluster://"+set.Nodes()[0].Addr(), "--redis-username", login.Username)
	conn := dial(t, s.grpc, nil)
	decided := func(tenant string) bool {
		got, err := ask(t.Context(), conn, "pdftalk.ingest", tenant)
		return err == nil && decision(got) == "ALLOWED"
	}
	redistest.Eventually(t, "every slot is served", func() bool {
		var state statePage
		_, text := s.get(t, "/state")
		return json.Unmarshal([]byte(text), &state) == nil && state.Cluster.Slots == 16384 && decided("first")
	})
	master, err := set.Owner(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := master.Kill(); err != nil {
		t.Fatal(err)
	}
	allowed, refused := 0, 0
	next := 0
	s.await(t, "a hundred tenants in a row to be decided", func(ctx context.Context) error {
		for row := range 100 {
			next++
			if !decided(fmt.Sprint("tenant-", next)) {
				refused++
				return fmt.Errorf("the %d. was refused", row)
			}
			allowed++
		}
		if refused == 0 {
			return fmt.Errorf("nobody has noticed the dead master yet")
		}
		return ctx.Err()
	})
	if allowed == 100 {
		t.Error("no tenant was decided while one of three masters was away")
	}
	s.search(t, login.Password)
}
