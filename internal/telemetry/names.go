package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Buckets of the histograms.
var (
	// latencyBuckets are in seconds, from 50 µs to 50 ms, close together around the default budget of 20 ms.
	latencyBuckets = []float64{
		.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .015, .02, .025, .03, .05,
	}
	// dialBuckets are in seconds, from 1 ms to the longest that a dial and its proof can take.
	dialBuckets  = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
	batchBuckets = prometheus.ExponentialBuckets(1, 2, 11) // calls in one round trip, from 1 to 1024
)

// The metrics. Every name this service exports is here, but for those of the Go runtime and of the process.
var (
	decisionsTotal = Metric{
		"ratelimit_decisions_total", Counter,
		[]string{"domain", "endpoint_id", "reason", "cause", "answer"},
		"Requests decided, by the endpoint that governed the decision, one of the eight reasons, the finer cause, " +
			"and the answer (ok, over_limit, unavailable).", nil,
	}
	decisionSeconds = Metric{
		"ratelimit_decision_seconds", Histogram,
		[]string{"answer"},
		"Time from a request's charges to its decision: breaker, store, emergency limiter.", latencyBuckets,
	}
	decisionsInFlight = Metric{
		"ratelimit_decisions_in_flight", Gauge, nil, "Requests being decided now.", nil,
	}
	unmatchedTotal = Metric{
		"ratelimit_unmatched_total", Counter,
		[]string{"domain"},
		"Requests that no policy governs, and so passed, by domain; one that is not configured counts as \"other\".",
		nil,
	}
	rpcsTotal = Metric{
		"ratelimit_rpcs_total", Counter,
		[]string{"code"},
		"Unary gRPC calls answered, by gRPC status code. INVALID_ARGUMENT is a malformed request, INTERNAL a bug.", nil,
	}
	panicsTotal = Metric{
		"ratelimit_panics_total", Counter, nil, "Panics recovered in a gRPC handler or in the store. Each one is a bug.", nil,
	}
	emergencyTotal = Metric{
		"ratelimit_emergency_total", Counter,
		[]string{"domain", "endpoint_id", "result"},
		"Requests that the emergency limiter of a fail_open endpoint decided, by result (admitted, denied).", nil,
	}
	emergencyTokensTotal = Metric{
		"ratelimit_emergency_tokens_total", Counter,
		[]string{"domain", "endpoint_id"},
		"Cost, in tokens, of the requests that the emergency limiter admitted and the store never counted.", nil,
	}
	breakerState = Metric{
		"ratelimit_breaker_state", Gauge,
		[]string{"state"},
		"1 for the state the circuit breaker is in (closed, open, half_open), else 0.", nil,
	}
	breakerFailures = Metric{
		"ratelimit_breaker_failures", Gauge, nil, "Consecutive failures that the circuit breaker has counted.", nil,
	}
	breakerTransitionsTotal = Metric{
		"ratelimit_breaker_transitions_total", Counter,
		[]string{"from", "to"},
		"Moves of the circuit breaker.", nil,
	}
	storeRoundTripSeconds = Metric{
		"ratelimit_store_round_trip_seconds", Histogram, nil,
		"Time of one round trip to the store, whatever the number of decisions in it.", latencyBuckets,
	}
	storeBatchCalls = Metric{
		"ratelimit_store_batch_calls", Histogram, nil, "Decisions that shared one round trip.", batchBuckets,
	}
	storeErrorsTotal = Metric{
		"ratelimit_store_errors_total", Counter,
		[]string{"cause"},
		"Round trips that failed, by the cause of the first failure in them.", nil,
	}
	storeDroppedTotal = Metric{
		"ratelimit_store_dropped_total", Counter,
		[]string{"cause"},
		"Decisions given up before they were sent: queue_full, or dropped because they could not have met their " +
			"deadline.", nil,
	}
	storeDialsTotal = Metric{
		"ratelimit_store_dials_total", Counter,
		[]string{"cause"},
		"Attempts to connect a lane, by what they failed of; \"none\" succeeded.", nil,
	}
	storeDialSeconds = Metric{
		"ratelimit_store_dial_seconds", Histogram, nil,
		"Time from the dial to a lane's connection that is proved to work.", dialBuckets,
	}
	storeMovesTotal = Metric{
		"ratelimit_store_master_changes_total", Counter, nil,
		"Times that the lanes went over to another master.", nil,
	}
	storeReloadsTotal = Metric{
		"ratelimit_store_script_reloads_total", Counter,
		[]string{"cause"},
		"Times that the server had lost the script, by what the re-load failed of; \"none\" succeeded.", nil,
	}
	storeLanes = Metric{
		"ratelimit_store_lanes", Gauge, nil, "Lanes to the store.", nil,
	}
	storeConnected = Metric{
		"ratelimit_store_lanes_connected", Gauge, nil, "Lanes that are connected and proved to work.", nil,
	}
	storeQueueDepth = Metric{
		"ratelimit_store_queue_depth", Gauge, nil, "Decisions that wait for a lane.", nil,
	}
	storeInFlight = Metric{
		"ratelimit_store_in_flight", Gauge, nil, "Decisions that were sent and not yet answered.", nil,
	}
	denyCacheTotal = Metric{
		"ratelimit_deny_cache_total", Counter,
		[]string{"result"},
		"What the deny cache in front of the store did: hit (a request was denied without asking the store, which had " +
			"just said so), kept (a denial was remembered), evicted (one had to make room before it ended).", nil,
	}
	denyCacheEntries = Metric{
		"ratelimit_deny_cache_entries", Gauge, nil, "Buckets that the deny cache knows to deny now.", nil,
	}
	redisInfoAge = Metric{
		"ratelimit_redis_info_age_seconds", Gauge, nil,
		"Time since a master last told how it is; the other ratelimit_redis metrics are of that moment. Missing without " +
			"--redis-info-interval.", nil,
	}
	redisInfoFailed = Metric{
		"ratelimit_redis_info_failed_total", Counter, nil, "Times that a master was asked how it is and did not tell.", nil,
	}
	sentinelEventsTotal = Metric{
		"ratelimit_sentinel_events_total", Counter,
		[]string{"event"},
		"Events that Sentinels announced, by name. Each Sentinel announces the same one, and each is counted.", nil,
	}
	sentinelsKnown = Metric{
		"ratelimit_sentinels_known", Gauge, nil, "Sentinels that are configured or were learnt of.", nil,
	}
	sentinelsReachable = Metric{
		"ratelimit_sentinels_reachable", Gauge, nil, "Sentinels that answered the last question.", nil,
	}
	sentinelsAgreeing = Metric{
		"ratelimit_sentinels_agreeing", Gauge, nil,
		"Sentinels that answer and name the master that this process takes for it.", nil,
	}
	sentinelQuorum = Metric{
		"ratelimit_sentinel_quorum_ok", Gauge, nil,
		"1 while any Sentinel that answers finds that a failover could be agreed on and authorized (CKQUORUM), else 0.", nil,
	}
	sentinelMasterKnown = Metric{
		"ratelimit_sentinel_master_known", Gauge, nil, "1 once a master's address is known, else 0.", nil,
	}
	sentinelMasterDown = Metric{
		"ratelimit_sentinel_master_down", Gauge,
		[]string{"flag"},
		"1 while any Sentinel that answers holds the master for down: in its own opinion (s_down), or that of enough " +
			"of them (o_down).", nil,
	}
	sentinelSwitchesTotal = Metric{
		"ratelimit_sentinel_master_switches_total", Counter, nil,
		"Times that another address became the master's.", nil,
	}
	sentinelEpoch = Metric{
		"ratelimit_sentinel_config_epoch", Gauge, nil,
		"Configuration epoch of the master: every failover has a higher one.", nil,
	}
	sentinelReplicas = Metric{
		"ratelimit_sentinel_replicas", Gauge, nil, "Replicas that the Sentinels know.", nil,
	}
	sentinelReplicasHealthy = Metric{
		"ratelimit_sentinel_replicas_healthy", Gauge, nil,
		"Replicas that the Sentinels reach and that are linked to the master.", nil,
	}
	sentinelReplicaLag = Metric{
		"ratelimit_sentinel_replica_lag_bytes", Gauge, nil,
		"How far the replica that is furthest behind is behind the one that is furthest ahead, as of the Sentinels' last " +
			"look, which may be 10 s old.", nil,
	}
	sentinelReplicaLinkDown = Metric{
		"ratelimit_sentinel_replica_link_down_seconds", Gauge, nil,
		"How long the replica that has been cut off the longest has had no link to the master.", nil,
	}
	sentinelFailoverSeconds = Metric{
		"ratelimit_sentinel_failover_seconds", Gauge, nil,
		"Duration of the last failover, from the first +odown or +try-failover to the first +switch-master; absent " +
			"before the first one.", nil,
	}
	sentinelFailoverAge = Metric{
		"ratelimit_sentinel_failover_age_seconds", Gauge, nil,
		"Time since the last failover's first +switch-master; absent before the first one.", nil,
	}
	clusterShards = Metric{
		"ratelimit_cluster_shards", Gauge,
		[]string{"state"},
		"Masters of the Cluster that decisions may go to, by the state of their circuit breaker.", nil,
	}
	clusterSlots = Metric{
		"ratelimit_cluster_slots", Gauge, nil, "Slots of the Cluster that have an owner; all is well with 16384.", nil,
	}
	clusterTopologyAge = Metric{
		"ratelimit_cluster_topology_age_seconds", Gauge, nil, "Time since a node last told the Cluster's topology.", nil,
	}
	clusterReloadsTotal = Metric{
		"ratelimit_cluster_topology_reloads_total", Counter,
		[]string{"result"},
		"Times that nodes were asked for the Cluster's topology, by result (ok: one answered, failed: none did).", nil,
	}
	clusterRedirectsTotal = Metric{
		"ratelimit_cluster_redirects_total", Counter,
		[]string{"kind"},
		"Decisions that a node did not make because the slot is not its own (moved), not any more (ask), only in part " +
			"(tryagain), or not served (clusterdown). All but the last are followed.", nil,
	}
	clusterCrossSlotTotal = Metric{
		"ratelimit_cluster_cross_slot_total", Counter, nil,
		"Requests whose buckets were in several slots, and so were not decided in one step. shard_by avoids them.", nil,
	}
	clusterRefundsTotal = Metric{
		"ratelimit_cluster_refunds_total", Counter,
		[]string{"result"},
		"Refunds of what one slot admitted and another denied: done within the budget, late, or lost, so that a bucket " +
			"admits less than it should.", nil,
	}
	memoryBuckets = Metric{
		"ratelimit_memory_buckets", Gauge, nil, "Buckets in the embedded store.", nil,
	}
	memoryDroppedTotal = Metric{
		"ratelimit_memory_dropped_total", Counter,
		[]string{"why"},
		"Buckets that the embedded store forgot: full ones, which loses nothing, and evicted ones, which start full " +
			"the next time because there was no room for more.", nil,
	}
	policyLoadsTotal = Metric{
		"ratelimit_policy_loads_total", Counter,
		[]string{"domain", "outcome"},
		"Loads of the policy files, by what they did to a domain (unchanged, installed, kept, rejected).", nil,
	}
	policyLastLoadFailed = Metric{
		"ratelimit_policy_last_load_failed", Gauge, nil,
		"1 while the newest policy files have a fault anywhere, else 0. /policies on the admin port tells which.", nil,
	}
	policyWatchFailed = Metric{
		"ratelimit_policy_watch_failed", Gauge, nil,
		"1 while changes of the policy files are noticed by periodic checks only, else 0.", nil,
	}
	policyInfo = Metric{
		"ratelimit_policy_info", Gauge,
		[]string{"domain", "version"},
		"1 for the version of each domain's policies in force: the beginning of a hash of its files.", nil,
	}
	policyCount = Metric{
		"ratelimit_policies", Gauge, []string{"domain"}, "Policies in force.", nil,
	}
	policyAgeSeconds = Metric{
		"ratelimit_policy_age_seconds", Gauge,
		[]string{"domain"},
		"Time since the domain's policies in force were loaded.", nil,
	}
	policyStale = Metric{
		"ratelimit_policy_stale", Gauge,
		[]string{"domain"},
		"1 while the newest files of the domain were refused and older policies are in force, else 0.", nil,
	}
	buildInfo = Metric{
		"ratelimit_build_info", Gauge,
		[]string{"version", "revision", "go_version"},
		"1; the labels say what was built.", nil,
	}
)

// Catalogue lists every metric, as docs/metrics.md shows them.
func Catalogue() []Metric {
	all := []Metric{
		decisionsTotal, decisionSeconds, decisionsInFlight, unmatchedTotal, rpcsTotal, panicsTotal,
		emergencyTotal, emergencyTokensTotal,
		breakerState, breakerFailures, breakerTransitionsTotal,
		storeRoundTripSeconds, storeBatchCalls, storeErrorsTotal, storeDroppedTotal, storeDialsTotal, storeDialSeconds,
		storeMovesTotal, storeReloadsTotal,
		storeLanes, storeConnected, storeQueueDepth, storeInFlight,
		denyCacheTotal, denyCacheEntries,
		sentinelEventsTotal, sentinelsKnown, sentinelsReachable, sentinelsAgreeing, sentinelQuorum,
		sentinelMasterKnown, sentinelMasterDown, sentinelSwitchesTotal, sentinelEpoch,
		sentinelReplicas, sentinelReplicasHealthy, sentinelReplicaLag, sentinelReplicaLinkDown,
		sentinelFailoverSeconds, sentinelFailoverAge,
		redisInfoAge, redisInfoFailed,
		clusterShards, clusterSlots, clusterTopologyAge, clusterReloadsTotal, clusterRedirectsTotal,
		clusterCrossSlotTotal, clusterRefundsTotal,
		memoryBuckets, memoryDroppedTotal,
		policyLoadsTotal, policyLastLoadFailed, policyWatchFailed, policyInfo, policyCount, policyAgeSeconds,
		policyStale,
		buildInfo,
	}
	for _, g := range redisGauges {
		all = append(all, g.metric())
	}
	return all
}
