package sentinel

import (
	"testing"
	"time"
)

// What was on its way when a Sentinel was dismissed must not make it a voter again.
func TestWatcher_HearsNothingFromADismissedSentinel(t *testing.T) {
	w, err := New(Config{Master: "mymaster", Addresses: []string{"10.0.0.8:26379", "10.0.0.9:26379"}})
	if err != nil {
		t.Fatal(err)
	}
	p := w.posts["10.0.0.9:26379"]
	w.dismiss(p)
	now := time.Now()
	w.answered(p, answer{claim: claim{master: "10.0.0.1:6379"}, asked: now})
	w.heard(p, switchEvent, "mymaster 10.0.0.1 6379 10.0.0.2 6379")
	w.failed(p, errTorn)
	if len(w.ballot.voters) != 0 || len(w.posts) != 1 {
		t.Errorf("voters %v, posts %v, want none and one", w.ballot.voters, w.posts)
	}
}
