package load_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/load"
)

// fieldsAtFault finds the fields that err, as Run returns it, names.
func fieldsAtFault(err error) []string {
	var found []string
	switch e := err.(type) { //nolint:errorlint // it takes joined errors apart itself
	case nil:
	case *load.FieldError:
		found = append(found, e.Field)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			found = append(found, fieldsAtFault(inner)...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestConfig_NamesTheFieldAtFault(t *testing.T) {
	tests := map[string]struct {
		change func(*load.Config)
		want   []string
	}{
		"nothing to ask":            {func(c *load.Config) { c.Domain, c.Descriptors = "", nil }, []string{"Descriptors", "Domain"}},
		"nobody to ask":             {func(c *load.Config) { c.Target = "" }, []string{"Target"}},
		"an empty descriptor":       {func(c *load.Config) { c.Descriptors = append(c.Descriptors, nil) }, []string{"Descriptors"}},
		"an entry without a key":    {func(c *load.Config) { c.Descriptors[0][0].Key = "" }, []string{"Descriptors"}},
		"keys that nothing shows":   {func(c *load.Config) { c.Keys = 10 }, []string{"Keys"}},
		"no such distribution":      {func(c *load.Config) { c.Dist = 9 }, []string{"Dist"}},
		"no end":                    {func(c *load.Config) { c.Requests = 0 }, []string{"Duration"}},
		"a backlog without a rate":  {func(c *load.Config) { c.Backlog = 10 }, []string{"Backlog"}},
		"a rate that is none":       {func(c *load.Config) { c.Rate = math.NaN() }, []string{"Rate"}},
		"a ramp beyond the end":     {func(c *load.Config) { c.Ramp, c.Duration = time.Minute, time.Second }, []string{"Ramp"}},
		"too many workers":          {func(c *load.Config) { c.Connections, c.Streams = 1000, 1000 }, []string{"Streams"}},
		"negative numbers":          {func(c *load.Config) { c.Connections, c.Timeout, c.Hits = -1, -1, 0 }, []string{"Connections", "Timeout"}},
		"no such process":           {func(c *load.Config) { c.PIDs = []int{math.MaxInt32} }, []string{"PIDs"}},
		"a negative limit":          {func(c *load.Config) { c.Limit = &load.Limit{PerSecond: -1} }, []string{"Limit"}},
		"a fault at once":           {func(c *load.Config) { c.Fault = fault(0, 0) }, []string{"Fault.At"}},
		"a fault after the end":     {func(c *load.Config) { c.Duration, c.Fault = time.Second, fault(time.Second, 0) }, []string{"Fault.At"}},
		"a fault that does not end": {func(c *load.Config) { c.Duration, c.Fault = 2*time.Second, fault(time.Second, time.Second) }, []string{"Fault.For"}},
		"a fault that is none":      {func(c *load.Config) { c.Fault = &load.Fault{At: 1} }, []string{"Fault.Begin"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := small(listenAt(t, "tcp", "127.0.0.1:0"))
			tt.change(&cfg)
			_, err := load.Run(t.Context(), cfg)
			if diff := cmp.Diff(tt.want, fieldsAtFault(err)); diff != "" {
				t.Errorf("%v: fields at fault (-want +got):\n%s", err, diff)
			}
		})
	}
}

func fault(at, lasting time.Duration) *load.Fault {
	return &load.Fault{At: at, For: lasting, Begin: func(context.Context) error { return nil }}
}
