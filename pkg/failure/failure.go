// Package failure turns whatever a store does, or fails to do, into a decision within a time budget.
//
// Guard asks the breaker, hands the request to the store, waits on a channel and a timer, and looks the outcome up in
// the decision table. No error leaves this package: a store failure ends here as one of eight reasons. It knows no
// Redis, no gRPC and no metrics; stores, the emergency limiter and observers are given to it as interfaces. All types
// are safe for concurrent use unless they say otherwise.
//
// Specification: "Failure Semantics" (the decision table) and docs/architecture.md.
package failure
