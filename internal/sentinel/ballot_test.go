package sentinel

import (
	"testing"
	"time"
)

// step is something that a Sentinel says, and which master is accepted afterwards.
type step struct {
	at       time.Duration
	who      string
	says     string // "" lost, "A@3" an answer, "A>B" +switch-master
	accepted string
	late     time.Duration // how long before at the question was asked
}

func TestBallot_Accepts(t *testing.T) {
	const s = time.Second
	agreed := []step{
		{0, "s1", "A@1", "", 0},
		{0, "s2", "A@1", "A@1", 0},
		{0, "s3", "A@1", "A@1", 0},
	}
	after := func(more ...step) []step { return append(append([]step{}, agreed...), more...) }
	cases := map[string]struct {
		size  int
		steps []step
	}{
		"the only one is a majority": {1, []step{{0, "s1", "A@0", "A@0", 0}}},
		"a majority at the start":    {3, agreed},
		"a minority at the start after a second": {3, []step{
			{0, "s1", "A@1", "", 0},
			{s - 1, "s1", "A@1", "", 0},
			{s, "s1", "A@1", "A@1", 0},
			{3 * s, "s1", "B@2", "B@2", 0}, // nobody else to ask
			{3 * s, "s1", "A@1", "B@2", 0},
			{8*s - 1, "s1", "A@1", "B@2", 0},
			{8 * s, "s1", "A@1", "A@1", 0}, // set up anew
		}},
		"the newest of a split start": {2, []step{
			{0, "s1", "A@5", "", 0},
			{0, "s2", "B@6", "", 0},
			{s, "s1", "A@5", "B@6", 0},
		}},
		"a majority corrects a start with somebody else's Sentinel at once": {5, []step{
			{0, "foreign", "X@99", "", 0},
			{s, "foreign", "X@99", "X@99", 0},
			{2 * s, "s1", "A@3", "X@99", 0},
			{2 * s, "s2", "A@3", "X@99", 0},
			{2 * s, "s3", "A@3", "A@3", 0},
			{2 * s, "foreign", "X@99", "A@3", 0},
		}},
		"an announcement at once": {3, after(
			step{s, "s2", "A>B", "B@2", 0},
			step{s, "s2", "B@7", "B@7", 0}, // the failover took more than one attempt
			step{s, "s1", "A@1", "B@7", 0},
			step{s, "s3", "A@1", "B@7", 0},
		)},
		"the same announcement of everybody": {3, after(
			step{s, "s1", "A>B", "B@2", 0},
			step{s, "s2", "A>B", "B@2", 0},
			step{s, "s3", "A>B", "B@2", 0},
			step{s, "s2", "B@4", "B@4", 0}, // whoever answers first confirms it
			step{s, "s1", "B@4", "B@4", 0},
		)},
		"an announcement is taken back by who made it": {3, after(
			step{s, "s1", "A>B", "B@2", 0},
			step{s, "s1", "A@1", "A@1", 0},
		)},
		"an answer to a question from before the announcement is out of date": {3, after(
			step{s, "s1", "A>B", "B@2", 0},
			step{s, "s1", "A@1", "B@2", time.Millisecond},
			step{s, "s1", "B@2", "B@2", 0},
		)},
		"two announcements in a row": {3, after(
			step{s, "s1", "A>B", "B@2", 0},
			step{s, "s1", "B>C", "C@3", 0},
			step{s, "s2", "A>B", "C@3", 0},
			step{s, "s2", "B@5", "C@3", 0}, // newer than the guess, older than the truth
			step{s, "s1", "C@6", "C@6", 0},
			step{s, "s2", "B@5", "C@6", 0},
		)},
		"two announcements in a row that are taken back": {3, after(
			step{s, "s1", "A>B", "B@2", 0},
			step{s, "s1", "B>C", "C@3", 0},
			step{s, "s1", "A@1", "A@1", 0},
		)},
		"an announcement whose Sentinel falls silent": {3, after(
			step{s, "s1", "A>B", "B@2", 0},
			step{s, "s1", "", "B@2", 0},
			step{3 * s, "s2", "C@6", "C@6", 0},
		)},
		"no announcement of who was not heard yet": {3, after(
			step{s, "new", "A>B", "A@1", 0},
		)},
		"no announcement of who is behind": {3, after(
			step{s, "s1", "A>B", "B@2", 0},
			step{s, "s1", "B@2", "B@2", 0},
			step{2 * s, "s2", "B>A", "B@2", 0}, // it said A@1 last
			step{2 * s, "s2", "A@1", "B@2", 0},
			step{3 * s, "s1", "B>A", "A@3", 0},
			step{3 * s, "s1", "A@3", "A@3", 0},
			step{4 * s, "s3", "A>B", "A@3", 0}, // it slept through both failovers
			step{4 * s, "s3", "B@2", "A@3", 0},
			step{4 * s, "s3", "A@3", "A@3", 0},
		)},
		"no announcement of a move from elsewhere": {3, after(
			step{s, "s1", "X>B", "A@1", 0},
		)},
		"a newer epoch of one that was with us, at once": {3, after(
			step{s, "s3", "B@2", "B@2", 0},
		)},
		"no newer epoch of one that never was": {3, after(
			step{s, "foreign", "X@99", "A@1", 0},
			step{9 * s, "foreign", "X@99", "A@1", 0},
		)},
		"a newer epoch of a majority that never was": {3, after(
			step{s, "n1", "B@2", "A@1", 0},
			step{s, "n2", "B@2", "A@1", 0},
			step{s, "n3", "B@3", "A@1", 0},
			step{s, "n4", "B@2", "B@2", 0}, // an epoch that only one has reached is not that of the majority
		)},
		"a stale Sentinel never turns us back": {3, after(
			step{s, "s3", "", "A@1", 0},
			step{2 * s, "s1", "B@2", "B@2", 0},
			step{2 * s, "s2", "B@2", "B@2", 0},
			step{9 * s, "s3", "A@1", "B@2", 0},
			step{99 * s, "s3", "A@1", "B@2", 0},
		)},
		"not even two, while one stands by the newer epoch": {3, after(
			step{s, "s1", "B@2", "B@2", 0},
			step{9 * s, "s2", "A@1", "B@2", 0},
			step{99 * s, "s3", "A@1", "B@2", 0},
		)},
		"everybody lost keeps the last": {3, after(
			step{s, "s1", "", "A@1", 0},
			step{s, "s2", "", "A@1", 0},
			step{s, "s3", "", "A@1", 0},
			step{9 * s, "s1", "A@1", "A@1", 0},
		)},
		"Sentinels that were set up anew, after a while": {3, after(
			step{s, "s1", "A@0", "A@1", 0},
			step{s, "s2", "A@0", "A@1", 0}, // s3 still stands by A@1
			step{s, "s3", "B@0", "A@1", 0}, // the while begins
			step{6*s - 1, "s1", "A@0", "A@1", 0},
			step{6 * s, "s1", "A@0", "A@0", 0},
			step{7 * s, "s2", "B@1", "B@1", 0},
		)},
		"the while begins anew if one defends the epoch": {3, after(
			step{s, "s1", "A@0", "A@1", 0},
			step{s, "s2", "A@0", "A@1", 0},
			step{s, "s3", "", "A@1", 0},
			step{2 * s, "s1", "A@0", "A@1", 0},
			step{4 * s, "s3", "A@1", "A@1", 0},
			step{8 * s, "s1", "A@0", "A@1", 0},
			step{9 * s, "s3", "", "A@1", 0},
			step{9 * s, "s1", "A@0", "A@1", 0},
			step{14*s - 1, "s1", "A@0", "A@1", 0},
			step{14 * s, "s1", "A@0", "A@0", 0},
		)},
		"the same epoch with two masters goes by the majority": {3, after(
			step{s, "s1", "B@1", "A@1", 0},
			step{s, "s2", "B@1", "B@1", 0},
		)},
		"flapping follows the epochs": {3, after(
			step{s, "s1", "B@2", "B@2", 0},
			step{s, "s2", "A@1", "B@2", 0},
			step{2 * s, "s2", "A@3", "A@3", 0},
			step{2 * s, "s1", "B@2", "A@3", 0},
			step{3 * s, "s1", "B@4", "B@4", 0},
			step{3 * s, "s2", "A@3", "B@4", 0},
		)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { replay(t, c.size, c.steps) })
	}
}

func replay(t *testing.T, size int, steps []step) {
	t.Helper()
	b := newBallot()
	b.size = size
	for i, s := range steps {
		say(t, b, s)
		if got := b.accepted; got != parseClaim(t, s.accepted) {
			t.Fatalf("step %d, %s says %q at %v: accepted %v, want %s", i, s.who, s.says, s.at, got, s.accepted)
		}
	}
}

func say(t *testing.T, b *ballot, s step) {
	t.Helper()
	now := time.Unix(1e9, 0).Add(s.at)
	if s.says == "" {
		b.lost(s.who)
		return
	}
	if s.says[1] == '>' {
		b.announced(s.who, s.says[:1], s.says[2:], now)
		return
	}
	b.polled(s.who, parseClaim(t, s.says), now.Add(-s.late), now)
}

// parseClaim reads "A@3"; the empty string is nothing.
func parseClaim(t *testing.T, s string) claim {
	t.Helper()
	if s == "" {
		return claim{}
	}
	var epoch uint64
	for _, digit := range s[2:] {
		epoch = 10*epoch + uint64(digit-'0')
	}
	return claim{master: s[:1], epoch: epoch}
}
