// Package rls translates Envoy's rate limit protocol: ShouldRateLimit requests into charges, decisions into answers.
//
// It knows which fields Envoy reads and which it misreads, and nothing about how a request is decided: the policies
// and the decider are given to it as interfaces. It has no clock, no store and no metrics. Server and Shield are safe
// for concurrent use; their zero values are not meant to be used, except that a zero Shield works.
//
// Protocol: envoy.service.ratelimit.v3 (go-control-plane). What a real Envoy sends is accepted even where the
// protocol's own validation rules would forbid it: empty values, descriptors without entries, repeated keys.
package rls
