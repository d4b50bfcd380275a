package cluster

// Hooks are called from several goroutines at once. They must not block. A nil one is not called.
type Hooks struct {
	// Reloaded: the topology was asked for; nil if some node answered. The error holds no credentials.
	Reloaded func(err error)
	// Changed: slots have other owners than before; owned says how many have one now.
	Changed func(slots, owned int)
}
