package rls

import "fmt"

// Deny says how Envoy is told that a request must not pass because the store cannot decide. A request that is over
// its limit is answered OVER_LIMIT in either mode.
type Deny uint8

// The deny modes.
const (
	// DenyGRPCError answers gRPC FAILED_PRECONDITION: Envoy neither retries it nor ejects the host for it, and its
	// filter's failure_mode_deny and status_on_error make it the 503. The default.
	DenyGRPCError Deny = 1 + iota
	// DenyOverLimit answers OVER_LIMIT with the reason in metadata and header, for those who cannot set
	// failure_mode_deny; a local reply mapper on the metadata must make it the 503.
	DenyOverLimit
)

// String names the mode as the command line does.
func (d Deny) String() string {
	switch d {
	case DenyGRPCError:
		return "grpc_error"
	case DenyOverLimit:
		return "over_limit"
	default:
		return fmt.Sprintf("deny(%d)", uint8(d))
	}
}

// ParseDeny is the inverse of Deny.String.
func ParseDeny(s string) (Deny, error) {
	for _, d := range [...]Deny{DenyGRPCError, DenyOverLimit} {
		if d.String() == s {
			return d, nil
		}
	}
	return 0, fmt.Errorf("rls: deny mode is %q, must be grpc_error or over_limit", s)
}
