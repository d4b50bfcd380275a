package load

import "time"

// progressInterval is the time between two calls of Config.OnProgress.
const progressInterval = 500 * time.Millisecond

// Progress is a look at a run that goes on.
type Progress struct {
	// Elapsed is the time since the start, warm-up included.
	Elapsed time.Duration
	// Total is when the run ends; 0 if only the number of requests bounds it.
	Total time.Duration
	// WarmingUp tells that what is sent now will not be reported.
	WarmingUp bool
	// FaultActive tells that the fault has begun and not ended.
	FaultActive bool
	// Answered is the number of requests that ended so far, warm-up included.
	Answered int64
	// PerSecond is the rate of requests that ended since the last look.
	PerSecond float64
	// OverLimit and Errors count the answers of their kind since the last look.
	OverLimit, Errors int64
	// Worst is the longest latency since the last look.
	Worst time.Duration
}
