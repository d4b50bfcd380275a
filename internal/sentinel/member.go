package sentinel

// Member is what a Watcher knows of one Sentinel.
type Member struct {
	// Address is host:port as configured or announced.
	Address string `json:"address"`
	// Reachable: it answered the last question. Subscribed: its events are listened to.
	Reachable  bool `json:"reachable"`
	Subscribed bool `json:"subscribed"`
	// Master and Epoch are what it said last.
	Master string `json:"master"`
	Epoch  uint64 `json:"epoch"`
	// LastError is why it last failed; empty if it never did.
	LastError string `json:"last_error,omitempty"`
}
