package sentinel

import (
	"testing"
	"time"
)

func TestBackoff_DoublesUpToItsMost(t *testing.T) {
	b := backoff{least: 100 * time.Millisecond, most: 500 * time.Millisecond}
	for round := range 2 {
		for i, most := range []time.Duration{100, 200, 400, 500, 500} {
			most *= time.Millisecond
			if got := b.pause(); got < most/2 || got > most {
				t.Errorf("round %d, failure %d: pause = %v, want from %v to %v", round, i+1, got, most/2, most)
			}
		}
		b.succeeded()
	}
}
