package preflight

// Result is one finding of a check.
type Result struct {
	// Check is the ID of the check.
	Check string `json:"check"`
	// Status says how bad it is.
	Status Status `json:"status"`
	// Nodes are the addresses of the servers that it concerns; empty for the set-up as a whole.
	Nodes []string `json:"nodes,omitempty"`
	// Reason says what was found.
	Reason string `json:"reason"`
	// Remedy says what to do about it; empty if there is nothing to do.
	Remedy string `json:"remedy,omitempty"`
}
