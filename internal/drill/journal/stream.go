package journal

// Stream is one part of the load: requests to one endpoint.
type Stream struct {
	// Name is the endpoint's id.
	Name string `json:"name"`
	// FailMode is fail_open or fail_closed; empty if it is not known.
	FailMode string `json:"fail_mode,omitempty"`
	// PerSecond is the offered rate.
	PerSecond float64 `json:"offered_requests_per_second"`
	// Ration is the bucket that all its requests share, if admissions are to be held against it.
	Ration *Ration `json:"ration,omitempty"`
	// Fallback is what the emergency limiter admits each second while the store is away; 0 for fail_closed.
	Fallback float64 `json:"fallback_per_second,omitempty"`
	// Steady means that the store always admits it: its first ordinary answer after an outage is the store's own.
	Steady bool `json:"steady,omitempty"`
	// Bystander means that its buckets are where nothing breaks: it must not notice.
	Bystander bool `json:"bystander,omitempty"`
}

// Ration is a bucket that hardly refills.
type Ration struct {
	// Burst is how many requests it admits at once.
	Burst float64 `json:"burst"`
	// PerSecond is how fast it refills.
	PerSecond float64 `json:"per_second"`
}
