// Package topology starts sets of Redis servers on this machine: one alone, a master with replicas under Sentinels, a
// Cluster. Their configuration is that of deploy/redis. Each set waits until it is healthy, and lets its caller break
// it: nodes are killed, frozen and restarted one by one, and in a gated set the network between them is cut or slowed
// down (Network).
//
// It knows nothing of rate limiting, and does not judge what its sets are put through. Everything listens on loopback,
// and Close ends every process that was started, by its id. All types are safe for concurrent use.
package topology
