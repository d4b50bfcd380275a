package drill

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

const (
	// replicationLag is how much of the time before a crash a replica may not have received: replicas acknowledge once
	// a second, so that no less can be promised.
	replicationLag = time.Second
	// minReplicasMaxLag is that of deploy/redis/redis.conf; Redis checks it once a second.
	minReplicasMaxLag = 3 * time.Second
	checkPeriod       = time.Second
)

// scenario is a fault, and what must come of it.
type scenario struct {
	category journal.Category
	variant  string
	title    string
	// topology is where it is played; 0 is that of the category.
	topology Topology
	// gated puts the network between the nodes under the drill's control.
	gated  bool
	expect journal.Expectation
	// minReplicas is min-replicas-to-write; 0 is that of deploy/redis.
	minReplicas int
	// adapt changes what the plan has in common with others; nil changes nothing.
	adapt func(*journal.Plan, Config)
	// play breaks and mends. It returns an error only if it could not do so.
	play func(context.Context, *stage) error
}

// on is the topology that it is played on.
func (s scenario) on() Topology {
	if s.category == journal.Cluster {
		return Cluster
	}
	return cmp.Or(s.topology, Sentinel)
}

// scenarios are all that there are, those of a category together, its default first.
func scenarios() []scenario {
	return slices.Concat(
		masterScenarios(), partitionScenarios(), replicaScenarios(), sentinelScenarios(), clusterScenarios(),
	)
}

// Variants are those of a category, the default first; empty for one that cannot be drilled.
func Variants(c journal.Category) []string {
	var list []string
	for _, s := range scenarios() {
		if s.category == c {
			list = append(list, s.variant)
		}
	}
	return list
}

// Title says in a sentence what a variant does; empty if there is none such.
func Title(c journal.Category, variant string) string {
	s, err := find(c, variant)
	if err != nil {
		return ""
	}
	return s.title
}

// find is the scenario of that name; an empty variant is the default.
func find(c journal.Category, variant string) (scenario, error) {
	for _, s := range scenarios() {
		if s.category == c && (variant == "" || s.variant == variant) {
			return s, nil
		}
	}
	variants := Variants(c)
	if len(variants) == 0 {
		return scenario{}, fmt.Errorf("drill: there is no drill %v", c)
	}
	return scenario{}, fmt.Errorf("drill: %v has no variant %q, only %s", c, variant, strings.Join(variants, ", "))
}
