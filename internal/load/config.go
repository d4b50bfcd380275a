package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"time"
)

// Bounds of a Config.
const (
	maxKeys    = 100_000_000
	maxWorkers = 100_000
	maxBacklog = 1_000_000
	maxRate    = 10_000_000
)

// Defaults that depend on other fields.
const (
	streamsClosed = 16
	streamsOpen   = 64
	// backlogTime is how many seconds of arrivals may wait for a free stream.
	backlogTime = 10
)

// Config says what to send, how fast and for how long. Zero fields mean their defaults.
type Config struct {
	// Target is the address of the service: host:port, or unix:PATH. No default.
	Target string
	// TLS is how to talk to it; nil for plain text.
	TLS *tls.Config
	// Dial opens a connection to Target. Default: a TCP or unix socket.
	Dial func(ctx context.Context, target string) (net.Conn, error)
	// Connections is the number of connections. Default 4.
	Connections int
	// Streams is the most requests in flight on each connection. Default 16, in an open loop 64.
	Streams int

	// Domain of every request. No default.
	Domain string
	// Descriptors of every request. No default.
	Descriptors [][]Entry
	// Hits is the hits_addend of every request; by default none is sent, which counts as 1.
	Hits uint32
	// Keys is the number of different keys that KeyPlaceholder is replaced with. Default 1.
	Keys int
	// Dist says how the keys are drawn. Default Uniform.
	Dist Dist
	// Seed makes the keys that each worker draws repeatable. Default: a new one, see the report.
	Seed uint64

	// Rate is the number of requests that arrive each second, evenly spaced. Default 0: a closed loop.
	Rate float64
	// Backlog is the number of due requests that may wait for a free stream. One that finds it full is not sent at
	// all and counted as not offered. Default: as many as arrive in 10 s. Only for an open loop.
	Backlog int
	// Ramp is the time in which the load rises linearly from nothing: the rate of an open loop, the number of workers
	// of a closed one. It begins with the warm-up. Default 0.
	Ramp time.Duration
	// Warmup is the time at the start whose requests are sent but not reported. Default 0.
	Warmup time.Duration
	// Duration is the time in which requests are sent, after the warm-up. Default: unlimited.
	Duration time.Duration
	// Requests is the number of requests to send, after the warm-up. Default: unlimited. What is reached first, Duration
	// or Requests, ends the run; one of them is needed.
	Requests int64
	// Timeout is the gRPC deadline of each request, from when it is sent. Default: none.
	Timeout time.Duration
	// Drain is how long the last answers are waited for. Default 5 s.
	Drain time.Duration

	// PIDs are processes of this machine whose CPU time is reported. Needs /proc.
	PIDs []int
	// Limit is what the service should enforce on every key, to report what it admitted beyond. Default: no report.
	Limit *Limit
	// Fault is what to break in the middle of the run. Default: nothing.
	Fault *Fault
	// Stop ends the run when it is closed, as if its duration had passed: what was sent is still waited for. Default:
	// nothing stops it early but ctx, which gives up what was sent.
	Stop <-chan struct{}
	// OnAnswer is called with every request that ended, the warm-up's too, from many goroutines at once. It must not
	// block, since the load waits for it. Default: nothing is called.
	OnAnswer func(Observation)
	// OnProgress is called twice a second from the goroutine of Run. It must not block. Default: nothing is called.
	OnProgress func(Progress)
}

func (c Config) withDefaults() Config {
	streams := streamsClosed
	if c.Rate > 0 {
		streams = streamsOpen
		or(&c.Backlog, max(1, int(min(c.Rate*backlogTime, maxBacklog))))
	}
	or(&c.Connections, 4)
	or(&c.Streams, streams)
	or(&c.Keys, 1)
	or(&c.Dist, Uniform)
	or(&c.Drain, 5*time.Second)
	if c.Dial == nil {
		c.Dial = dialSocket
	}
	for c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	return c
}

// or gives a field that is zero its default.
func or[T comparable](field *T, otherwise T) {
	var zero T
	if *field == zero {
		*field = otherwise
	}
}

// Validate reports every field that cannot be used, as *FieldError values. It is about a Config with its defaults in
// place; Run calls it.
func (c Config) Validate() error {
	return errors.Join(
		check(c.Target != "", "Target", "is missing: the service's host:port, or unix:PATH"),
		within("Connections", c.Connections, 1, maxWorkers),
		within("Streams", c.Streams, 1, maxWorkers),
		check(c.Connections <= 0 || c.Streams <= maxWorkers/c.Connections, "Streams",
			fmt.Sprintf("connections times streams must be at most %d", maxWorkers)),
		c.validateContent(),
		c.validatePace(),
		c.validateFault(),
		c.validateLimit(),
	)
}

func (c Config) validateContent() error {
	faults := []error{
		check(c.Domain != "", "Domain", "is missing: the domain that the service's policies are for"),
		check(len(c.Descriptors) > 0, "Descriptors", "are missing: say what to ask, like tenant=acme"),
		within("Keys", c.Keys, 1, maxKeys),
		check(c.Dist.valid(), "Dist", fmt.Sprintf("%v is none of hot, uniform, zipf", c.Dist)),
	}
	placeholder := false
	for _, d := range c.Descriptors {
		faults = append(faults, check(len(d) > 0, "Descriptors", "one has no entry"))
		for _, e := range d {
			placeholder = placeholder || strings.Contains(e.Value, KeyPlaceholder)
			faults = append(faults, check(e.Key != "", "Descriptors", "an entry has no key"))
		}
	}
	faults = append(faults, check(c.Keys <= 1 || placeholder, "Keys",
		"no value holds "+KeyPlaceholder+", so that every request would be the same: write one like tenant="+KeyPlaceholder))
	return errors.Join(faults...)
}

func (c Config) validatePace() error {
	return errors.Join(
		check(c.Rate >= 0 && c.Rate <= maxRate, "Rate", fmt.Sprintf("must be from 0 to %d a second", maxRate)),
		within("Backlog", c.Backlog, 0, maxBacklog),
		check(c.Backlog == 0 || c.Rate > 0, "Backlog", "needs a rate: a closed loop has no backlog"),
		within("Requests", c.Requests, 0, math.MaxInt64),
		check(c.Duration > 0 || c.Requests > 0, "Duration", "is missing, and so is a number of requests"),
		within("Duration", c.Duration, 0, math.MaxInt64),
		within("Ramp", c.Ramp, 0, math.MaxInt64),
		within("Warmup", c.Warmup, 0, math.MaxInt64),
		within("Timeout", c.Timeout, 0, math.MaxInt64),
		within("Drain", c.Drain, 0, math.MaxInt64),
		check(c.Duration <= 0 || c.Ramp <= c.Warmup+c.Duration, "Ramp", "is longer than the run"),
	)
}

func (c Config) validateFault() error {
	f := c.Fault
	if f == nil {
		return nil
	}
	return errors.Join(
		check(f.Begin != nil, "Fault.Begin", "is missing: what to break"),
		check(f.At > 0, "Fault.At", "must be above 0, so that there is a time before the fault to compare with"),
		check(f.For >= 0, "Fault.For", "is negative"),
		check(c.Duration <= 0 || f.At < c.Duration, "Fault.At", fmt.Sprintf("is not within the run of %v", c.Duration)),
		check(c.Duration <= 0 || f.At >= c.Duration || f.For < c.Duration-f.At, "Fault.For",
			fmt.Sprintf("leaves no time after the fault: the run ends after %v", c.Duration)),
	)
}

func (c Config) validateLimit() error {
	if c.Limit == nil {
		return nil
	}
	return check(c.Limit.PerSecond >= 0 && c.Limit.Burst >= 0, "Limit", "is negative")
}

func check(ok bool, field, problem string) error {
	if ok {
		return nil
	}
	return &FieldError{Field: field, Problem: problem}
}

func within[T int | int64 | time.Duration](field string, v, low, high T) error {
	if v < low {
		return &FieldError{Field: field, Problem: fmt.Sprintf("is %v, must be at least %v", v, low)}
	}
	return check(v <= high, field, fmt.Sprintf("is %v, must be at most %v", v, high))
}
