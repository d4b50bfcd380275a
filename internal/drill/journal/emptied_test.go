package journal_test

import (
	"testing"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
)

// A store that comes back empty may have forgotten every admission until it was mended, and no more than that.
func TestAnalyse_AnEmptiedStoreMayForgetEverything(t *testing.T) {
	j := failover()
	j.Plan.Emptied = true
	got := journal.Analyse(j).Ledgers[0]
	const beforeTheFault = 300
	admittedUntilMended := beforeTheFault + 100 // the first 100 after the outage are what the bucket still held
	if got.InWindow != admittedUntilMended || got.MayBeLost != float64(admittedUntilMended) || got.Window != 6 {
		t.Errorf("in window, lost, window = %d, %v, %v s, want %d, the same, 6",
			got.InWindow, got.MayBeLost, got.Window, admittedUntilMended)
	}
}
