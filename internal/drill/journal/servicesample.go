package journal

import "time"

// ServiceSample is a look at the service's own state.
type ServiceSample struct {
	At time.Duration
	// Address is where it says the master is; empty between two.
	Address string
	// InFlight are the decisions that wait for the store.
	InFlight int
	// Breaker is the state of its circuit breaker.
	Breaker string
}
