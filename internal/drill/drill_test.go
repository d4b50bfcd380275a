package drill

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/load"
	"github.com/honestlimit/ratelimit/pkg/policy"
)

func TestConfig_ValidateNamesEveryFault(t *testing.T) {
	bad := Config{
		Category: journal.MasterExit, Variant: "explode", Rate: 7, Margin: -1, DownAfter: time.Millisecond,
	}.WithDefaults()
	err := bad.Validate()
	if err == nil {
		t.Fatal("a config full of faults is valid")
	}
	for _, want := range []string{"program", `no variant "explode", only stop`, "rate", "margin", "down-after"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told in: %v", want, err)
		}
	}
	if got := strings.Count(err.Error(), "\n") + 1; got != 5 {
		t.Errorf("%d faults, want 5: %v", got, err)
	}
	good := Config{Category: journal.MasterExit, Program: "ratelimit"}.WithDefaults()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}

func TestVariants_EveryCategoryHasSome(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range journal.Categories {
		variants := Variants(c)
		if len(variants) == 0 {
			t.Errorf("%v has no variant", c)
		}
		for _, v := range variants {
			name := c.String() + "/" + v
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
			if Title(c, v) == "" {
				t.Errorf("%s says nothing of itself", name)
			}
		}
	}
	if Variants(journal.Attached) != nil || Title(journal.MasterExit, "nothing") != "" {
		t.Error("there are variants of nothing")
	}
}

// What the drill judges by must be what the service enforces.
func TestPolicies_EnforceTheStreams(t *testing.T) {
	for _, category := range []journal.Category{journal.MasterExit, journal.Cluster} {
		cfg := Config{Category: category}.WithDefaults()
		set, err := policy.Parse("policies.yaml", []byte(cfg.policies()))
		if err != nil {
			t.Fatal(err)
		}
		offer := cfg.offer("target", nil)
		sum := 0.0
		for i, s := range offer.streams {
			sum += s.PerSecond
			descriptor := []policy.Entry{}
			for _, e := range offer.descriptors[i][0] {
				descriptor = append(descriptor, policy.Entry{Key: e.Key, Value: e.Value})
			}
			p := set.Domain(domain).Match(descriptor)
			if p == nil {
				t.Fatalf("no policy governs %s", s.Name)
			}
			if p.Endpoint.ID != s.Name || p.Endpoint.FailMode.String() != s.FailMode {
				t.Errorf("%s is governed by %s, %v", s.Name, p.Endpoint.ID, p.Endpoint.FailMode)
			}
			if s.Ration != nil && float64(p.Limit.Capacity) != s.Ration.Burst*1e6 {
				t.Errorf("%s has a burst of %d, want %v", s.Name, p.Limit.Capacity, s.Ration.Burst)
			}
			if s.Ration != nil && offer.keys[i] != 1 {
				t.Errorf("the ration of %s is shared by %d buckets", s.Name, offer.keys[i])
			}
			if s.Fallback*1e6 != float64(p.Endpoint.Fallback.Micro) {
				t.Errorf("%s falls back to %d, want %v", s.Name, p.Endpoint.Fallback.Micro, s.Fallback)
			}
		}
		if sum != cfg.Rate {
			t.Errorf("the streams offer %v, want %v", sum, cfg.Rate)
		}
	}
}

func TestOffer_PlacesTheOnlyTenant(t *testing.T) {
	offer := Config{}.WithDefaults().offer("target", map[string]string{open: "t77"})
	if got := offer.descriptors[1][0][1].Value; got != "t77" || offer.keys[1] != 1 {
		t.Errorf("%s asks for %s of %d, want t77 alone", open, got, offer.keys[1])
	}
	if got := offer.descriptors[0][0][1].Value; got != "t"+load.KeyPlaceholder || offer.keys[0] != tenants {
		t.Errorf("%s asks for %s of %d, want all", steady, got, offer.keys[0])
	}
}

func TestRecorder_ReadsAnswers(t *testing.T) {
	for _, c := range []struct {
		name, answer, reason string
		want                 journal.Verdict
		wantReason           string
	}{
		{"admitted by the store", "OK", "ALLOWED", journal.Admitted, "ALLOWED"},
		{"denied by the table", "OVER_LIMIT", "FAIL_CLOSED", journal.Denied, "FAIL_CLOSED"},
		{"a 503 without a reason", "error", "FailedPrecondition", journal.Denied, journal.DeniedWithoutReason},
		{"a service that is gone", "error", "Unavailable", journal.Failed, "Unavailable"},
		{"no answer at all", "unanswered", "", journal.Failed, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecorder(journal.Plan{}, nil)
			due := r.journal.Started.Add(time.Second)
			r.answer(3, load.Observation{Due: due, Sent: due, Answered: due.Add(time.Millisecond), Answer: c.answer, Reason: c.reason})
			want := journal.Answer{
				Stream: 3, Due: time.Second, Sent: time.Second, At: 1001 * time.Millisecond, Verdict: c.want, Reason: c.wantReason,
			}
			if diff := cmp.Diff([]journal.Answer{want}, r.finish().Answers); diff != "" {
				t.Errorf("(-want +have):\n%s", diff)
			}
			r.answer(0, load.Observation{})
			if len(r.journal.Answers) != 1 {
				t.Error("a finished journal is written on")
			}
		})
	}
}

func TestEvent_ReadsWhatSentinelsPublish(t *testing.T) {
	for _, c := range []struct {
		channel, payload string
		want             journal.Event
	}{
		{"+sdown", "master mymaster 127.0.0.1 6379", journal.Event{Name: "+sdown", Kind: "master", Text: "mymaster 127.0.0.1 6379"}},
		{"+switch-master", "mymaster 127.0.0.1 6379 127.0.0.1 6380", journal.Event{Name: "+switch-master", Text: "mymaster 127.0.0.1 6379 127.0.0.1 6380"}},
		{"+new-epoch", "4", journal.Event{Name: "+new-epoch", Text: "4"}},
	} {
		if got := event(&redis.Message{Channel: c.channel, Payload: c.payload}); got != c.want {
			t.Errorf("event(%s) = %+v, want %+v", c.channel, got, c.want)
		}
	}
}

func TestStates_PutTogetherWhatNodesSay(t *testing.T) {
	nodes := []observed{{name: "redis-0", address: "h:1"}, {name: "redis-1", address: "h:2"}, {name: "redis-2", address: "h:3"}}
	looks := []look{
		{script: true, info: map[string]string{
			"role": "master", "master_repl_offset": "900", "total_connections_received": "12",
			"slave0": "ip=h,port=2,state=online,offset=890,lag=1", "slave1": "ip=h,port=3,state=wait_bgsave,offset=0,lag=0",
		}},
		{script: true, info: map[string]string{"role": "slave", "master_link_status": "up", "slave_repl_offset": "890"}},
		{info: map[string]string{"role": "slave", "master_link_status": "down"}},
	}
	want := []journal.NodeState{
		{Name: "redis-0", Address: "h:1", Master: true, Script: true, LagSeconds: -1, Offset: 900, Accepted: 12},
		{Name: "redis-1", Address: "h:2", LinkUp: true, Script: true, LagSeconds: 1, Offset: 890},
		{Name: "redis-2", Address: "h:3", LagSeconds: -1},
	}
	if diff := cmp.Diff(want, states(nodes, looks)); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
}

const nodesBefore = `a h:1@1,, master - 0 0 1 connected 0-5460
b h:2@2 myself,master - 0 0 2 connected 5461-10922
c h:3@3 slave a 0 0 1 connected
`

func TestChanges_TellWhatACommunityThinks(t *testing.T) {
	me := observed{name: "redis-1", address: "h:2"}
	names := map[string]string{"h:1": "redis-0", "h:2": "redis-1", "h:3": "redis-3"}
	before := opinions(nodesBefore)
	if got := changes(me, names, nil, before); got != nil {
		t.Errorf("the first look makes events: %v", got)
	}
	for _, c := range []struct {
		name, from, to string
		want           []journal.Event
	}{
		{"nothing", "", "", nil},
		{"a silence", "a h:1@1,, master -", "a h:1@1,, master,fail? -", []journal.Event{
			{Source: "redis-1", Name: journal.EventPFail, Kind: "master", Text: "redis-0"},
		}},
		{"a death", "a h:1@1,, master -", "a h:1@1,, master,fail -", []journal.Event{
			{Source: "redis-1", Name: journal.EventFail, Kind: "master", Text: "redis-0"},
		}},
		{"an heir", "slave a 0 0 1 connected", "master - 0 0 9 connected 0-5460", []journal.Event{
			{Source: "redis-1", Name: journal.EventOwner, Kind: "master", Text: "redis-3"},
		}},
		{"an owner that gives a slot away", "connected 0-5460", "connected 0-5459", nil},
		{"a slot on its way", "slave a 0 0 1 connected", "master - 0 0 9 connected [5460-<-a]", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := opinions(strings.Replace(nodesBefore, c.from, c.to, 1))
			if diff := cmp.Diff(c.want, changes(me, names, before, now)); diff != "" {
				t.Errorf("(-want +have):\n%s", diff)
			}
		})
	}
	me.address = "h:3"
	now := opinions(strings.Replace(nodesBefore, "slave a 0 0 1 connected", "master - 0 0 9 connected 0-5460", 1))
	if got := changes(me, names, before, now); len(got) != 1 || got[0].Name != journal.EventTaken {
		t.Errorf("a node that takes over says %v", got)
	}
}

func TestSkipsDetection_KnowsAnOrderedFailover(t *testing.T) {
	for command, want := range map[string]bool{
		"redis-cli -p 26379 SENTINEL FAILOVER mymaster": true,
		"redis-cli sentinel  failover mymaster":         true,
		`redis-cli "sentinel" "failover" m`:             true,
		"redis-cli cluster failover takeover":           true,
		"kubectl delete pod redis-0":                    false,
		"systemctl kill -s KILL redis-sentinel.service": false,
	} {
		if got := SkipsDetection(command); got != want {
			t.Errorf("SkipsDetection(%q) = %v, want %v", command, got, want)
		}
	}
}

func TestState_KnowsWhenEverythingIsConnected(t *testing.T) {
	for _, c := range []struct {
		name string
		text string
		want bool
	}{
		{"nothing", `{}`, false},
		{"a master", `{"redis":{"lanes":2,"lanes_connected":2}}`, true},
		{"half of the lanes", `{"redis":{"lanes":2,"lanes_connected":1}}`, false},
		{"a Cluster", `{"cluster":{"slots_owned":16384,"shards":[{"slots":9,"redis":{"lanes":2,"lanes_connected":2}}]}}`, true},
		{"a Cluster without some slots", `{"cluster":{"slots_owned":9,"shards":[{"slots":9,"redis":{"lanes":2,"lanes_connected":2}}]}}`, false},
		{"a shard that is away", `{"cluster":{"slots_owned":16384,"shards":[{"slots":9,"redis":{"lanes":2}}]}}`, false},
		{"a shard that nothing depends on", `{"cluster":{"slots_owned":16384,"shards":[{"redis":{"lanes":2}}]}}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parseState(t, c.text)
			if got := s.connected(); got != c.want {
				t.Errorf("connected = %v, want %v", got, c.want)
			}
		})
	}
	s := parseState(t, `{"decisions_in_flight":4,"cluster":{"shards":[{"slots":1,"breaker":{"state":"closed"}},
		{"breaker":{"state":"open"}},{"slots":1,"breaker":{"state":"half_open"}}]}}`)
	if diff := cmp.Diff(journal.ServiceSample{InFlight: 4, Breaker: "half_open"}, s.sample()); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
}

func parseState(t *testing.T, text string) (s state) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s
}
