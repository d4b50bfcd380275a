package preflight

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const downAfter = 5 * time.Second

func TestElect_DoesWhatTheSpecificationSays(t *testing.T) {
	for _, c := range []struct {
		name    string
		all     []candidate
		want    []string
		refused map[string]string
	}{
		{
			"the specification's example",
			[]candidate{
				{address: "A", priority: 50, offset: 9_991_000, runID: "b91"},
				{address: "B", priority: 100, offset: 9_999_900, runID: "a12"},
				{address: "C", priority: 0, offset: 10_000_000, runID: "c33"},
			},
			[]string{"A", "B"},
			map[string]string{"C": "has priority 0"},
		},
		{
			"equal priorities: the offset decides",
			[]candidate{{address: "A", priority: 1, offset: 5, runID: "a"}, {address: "B", priority: 1, offset: 6, runID: "b"}},
			[]string{"B", "A"},
			map[string]string{},
		},
		{
			"equal offsets: the run ID decides",
			[]candidate{{address: "A", priority: 1, offset: 5, runID: "b"}, {address: "B", priority: 1, offset: 5, runID: "a"}},
			[]string{"B", "A"},
			map[string]string{},
		},
		{
			"the best one is down, the next is away",
			[]candidate{
				{address: "A", priority: 1, down: true},
				{address: "B", priority: 2, away: true},
				{address: "C", priority: 100},
			},
			[]string{"C"},
			map[string]string{"A": "is down", "B": "cannot be reached"},
		},
		{
			"cut off for just as long as may be, and for longer",
			[]candidate{
				{address: "A", priority: 1, cutOff: 10*downAfter + 2*time.Second},
				{address: "B", priority: 1, cutOff: 10*downAfter + 2*time.Second + time.Millisecond},
			},
			[]string{"A"},
			map[string]string{"B": "has been cut off from the master for too long"},
		},
		{"nobody", nil, nil, map[string]string{}},
	} {
		got := elect(c.all, downAfter, 2*time.Second)
		var order []string
		for _, e := range got.eligible {
			order = append(order, e.address)
		}
		if diff := cmp.Diff(c.want, order); diff != "" {
			t.Errorf("%s: order (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.refused, got.refused); diff != "" {
			t.Errorf("%s: refused (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestThreshold_IsTheLargerOfQuorumAndMajority(t *testing.T) {
	for _, c := range []struct{ quorum, known, want int }{
		{1, 1, 1}, {2, 3, 2}, {1, 3, 2}, {3, 3, 3}, {2, 4, 3}, {2, 5, 3}, {4, 5, 4},
	} {
		if got := threshold(c.quorum, c.known); got != c.want {
			t.Errorf("threshold(%d, %d) = %d, want %d", c.quorum, c.known, got, c.want)
		}
	}
}

func TestSurvivals_CountsEachMachineOnce(t *testing.T) {
	all := []*watcher{}
	for _, host := range []string{"a", "b", "a"} {
		all = append(all, &watcher{server: server{host: host}})
	}
	got := survivals(all, "b")
	want := []survival{{host: "a", left: 1}, {host: "b", left: 2, withMaster: true}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(survival{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
