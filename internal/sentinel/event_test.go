package sentinel

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseEvent_ReadsWhatSentinelsSay(t *testing.T) {
	const old, replica = "10.0.0.1:6379", "10.0.0.2:6379"
	for _, c := range []struct {
		channel, payload string
		want             Event
		master           string
	}{
		{
			"+sdown", "master mymaster 10.0.0.1 6379",
			Event{Name: "+sdown", Kind: "master", Address: old, Master: old},
			"mymaster",
		},
		{
			"+odown", "master mymaster 10.0.0.1 6379 #quorum 2/2",
			Event{Name: "+odown", Kind: "master", Address: old, Master: old},
			"mymaster",
		},
		{
			"+promoted-slave", "slave 10.0.0.2:6379 10.0.0.2 6379 @ mymaster 10.0.0.1 6379",
			Event{Name: "+promoted-slave", Kind: "slave", Address: replica, Master: old},
			"mymaster",
		},
		{
			"+config-update-from", "sentinel 0123 10.0.0.8 26379 @ mymaster 10.0.0.1 6379",
			Event{Name: "+config-update-from", Kind: "sentinel", Address: "10.0.0.8:26379", Master: old},
			"mymaster",
		},
		{
			"+switch-master", "mymaster 10.0.0.1 6379 fe80::1 6379",
			Event{Name: "+switch-master", Kind: "master", Address: "[fe80::1]:6379", Master: old},
			"mymaster",
		},
		{"+switch-master", "mymaster 10.0.0.1 6379 10.0.0.2", Event{Name: "+switch-master"}, ""},
		{"+new-epoch", "7", Event{Name: "+new-epoch", Epoch: 7}, ""},
		{"+vote-for-leader", "0123 8", Event{Name: "+vote-for-leader", Epoch: 8}, ""},
		{"+tilt", "#tilt mode entered", Event{Name: "+tilt"}, ""},
		{"+anything", "at all", Event{Name: OtherEvent}, ""},
		{"+sdown", "", Event{Name: "+sdown"}, ""},
	} {
		got, master := parseEvent(c.channel, c.payload)
		if diff := cmp.Diff(c.want, got); diff != "" || master != c.master {
			t.Errorf("parseEvent(%q, %q): master %q, want %q (-want +got):\n%s", c.channel, c.payload, master, c.master, diff)
		}
	}
}

func TestFailover_MeasuresFromTheFirstSignToTheSwitch(t *testing.T) {
	const a, b = "10.0.0.1:6379", "10.0.0.2:6379"
	about := func(name, master string) Event {
		return Event{Name: name, Kind: "master", Address: master, Master: master}
	}
	replaces := func(from, to string) Event {
		return Event{Name: switchEvent, Kind: "master", Address: to, Master: from}
	}
	promotes := Event{Name: promotedEvent, Kind: "slave", Address: b, Master: a}
	const s = time.Second
	for name, steps := range map[string][]struct {
		at            time.Duration
		e             Event
		elapsed, took time.Duration
	}{
		"three Sentinels tell of one failover": {
			{0, about(downEvent, a), 0, 0},
			{1 * s, about(agreedEvent, a), 0, 0},
			{2 * s, about(tryEvent, a), s, 0},
			{3 * s, promotes, 2 * s, 0},
			{4 * s, replaces(a, b), 3 * s, 3 * s},
			{5 * s, about(agreedEvent, a), 4 * s, 3 * s},
			{6 * s, replaces(a, b), 5 * s, 3 * s},
		},
		"a master that comes back": {
			{0, about(agreedEvent, a), 0, 0},
			{1 * s, about(upEvent, a), s, 0},
			{2 * s, promotes, 0, 0},
			{9 * s, about(agreedEvent, a), 0, 0},
		},
		"there and back": {
			{0, about(tryEvent, a), 0, 0},
			{1 * s, replaces(a, b), s, s},
			{2 * s, about(tryEvent, b), 0, s},
			{4 * s, replaces(b, a), 2 * s, 2 * s},
			{5 * s, about(agreedEvent, a), 0, 2 * s},
		},
		"the way back was not heard": {
			{0, about(agreedEvent, a), 0, 0},
			{1 * s, replaces(a, b), s, s},
			{3600 * s, about(agreedEvent, a), 0, s},
			{3602 * s, replaces(a, b), 2 * s, 2 * s},
		},
		"the end of an attempt was not heard": {
			{0, about(agreedEvent, a), 0, 0},
			{3600 * s, about(agreedEvent, a), 0, 0},
			{3601 * s, replaces(a, b), s, s},
		},
		"a switch that nobody saw coming": {{0, replaces(a, b), 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var f failover
			for i, step := range steps {
				elapsed := f.note(step.e, time.Unix(1e9, 0).Add(step.at))
				if elapsed != step.elapsed || f.took != step.took {
					t.Errorf("step %d: elapsed %v, took %v, want %v and %v", i, elapsed, f.took, step.elapsed, step.took)
				}
			}
		})
	}
}
