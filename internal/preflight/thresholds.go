package preflight

import "time"

// Thresholds of the checks. The catalogue quotes them, and docs/preflight.md quotes the catalogue.
const (
	// Detection of a dead master, by Sentinels or by the nodes of a Cluster. The specification's incident had 30 s. A
	// Sentinel reconnects once a second: with less patience than that and a half, it takes its first second with a new
	// master for silence, and calls for another failover on the heels of the first.
	detectionWarn, detectionFail, detectionLow = 10 * time.Second, 30 * time.Second, 1500 * time.Millisecond

	// A failover that got stuck is retried after twice the time-out. Redis' default is 180 s.
	failoverWarn, failoverFail = time.Minute, 3 * time.Minute
	// A promotion is given failover-timeout to show, and Sentinel looks every second.
	failoverLow = 5 * time.Second

	// Clocks of two masters that differ give away or hold back what a limit allows in that time.
	skewWarn, skewFail = 100 * time.Millisecond, time.Second

	certificateWarn = 30 * 24 * time.Hour

	// Replicas report once a second, so a second or two is no lag.
	lagWarn, lagFail = 3 * time.Second, 10 * time.Second
	// behindWarn is how many bytes of the stream a healthy replica may be behind.
	behindWarn = 1 << 20

	// maxLagLow is below what a replica that reports once a second keeps to; maxLagHigh is a long split brain.
	maxLagLow, maxLagHigh = 2, 10

	// backlogSafety is the specification's safety factor.
	backlogSafety = 2
	// decisionBytes is what one decision adds to the replication stream.
	decisionBytes = 130
	// quietDecisions a second are no load to plan by.
	quietDecisions = 100
	// backlogDecisions is the rate that a backlog must bear if nothing is known of the real one.
	backlogDecisions = 1000

	// bufferLow is a hard limit of the replicas' output buffer that a burst reaches.
	bufferLow = 32 << 20

	memoryWarn, memoryFail   = 70, 90 // percent of maxmemory
	clientsWarn, clientsFail = 70, 90 // percent of maxclients

	// bucketBytes is what a bucket takes in Redis, measured.
	bucketBytes = 200
)

// The oldest versions of Redis: below, the service fails or is not tested.
var (
	versionFail = version{6, 2, 0}
	versionWarn = version{7, 0, 0}
)
