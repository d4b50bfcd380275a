package load

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// In a bubble nothing is ever late, so the lateness is made: the run began a second ago.
func TestRunner_DispatchThatIsLateKeepsTheDueTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(Config{Rate: 100, Duration: time.Second}.withDefaults(), nil, nil, nil)
		r.started = time.Now().Add(-time.Second)
		r.dispatch()
		var got, want []time.Duration
		for due := range r.arrivals {
			got = append(got, due)
			want = append(want, time.Duration(len(want))*10*time.Millisecond)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) != 100 {
			t.Errorf("%d arrivals, want 100; due (-want +got):\n%s", len(got), diff)
		}
	})
}
