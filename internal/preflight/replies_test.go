package preflight

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const nodesReply = `aa 10.0.0.1:7000@17000,node-1.example myself,master - 0 0 3 connected 0-5460 9000 [93->-bb]
bb 10.0.0.2:7000@17000,,tls-port=0 master,fail? - 0 0 4 connected 5461-8999
cc 10.0.0.3:7000@17000 slave aa 0 0 3 disconnected
dd :0@0 master,noaddr - 0 0 0 disconnected
ee fe80::1:7000@17000 master - 0 0 5 connected
nonsense
`

func TestParsePeers_ReadsClusterNodes(t *testing.T) {
	want := []peer{
		{
			id: "aa", address: "10.0.0.1:7000", name: "node-1.example:7000", flags: []string{"myself", "master"}, epoch: 3,
			ranges: []string{"0-5460", "9000"}, moving: []string{"[93->-bb]"}, linked: true,
		},
		{
			id: "bb", address: "10.0.0.2:7000", flags: []string{"master", "fail?"}, epoch: 4,
			ranges: []string{"5461-8999"}, linked: true,
		},
		{id: "cc", address: "10.0.0.3:7000", flags: []string{"slave"}, masterID: "aa", epoch: 3},
		{id: "ee", address: "[fe80::1]:7000", flags: []string{"master"}, epoch: 5, linked: true},
	}
	got := parsePeers(nodesReply)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(peer{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for slot, want := range map[int]bool{0: true, 5460: true, 5461: false, 9000: true, 9001: false} {
		if got[0].owns(slot) != want {
			t.Errorf("owns(%d) = %t, want %t", slot, !want, want)
		}
	}
}

func FuzzParsePeers(f *testing.F) {
	f.Add(nodesReply)
	f.Fuzz(func(t *testing.T, reply string) {
		view := clusterView{peers: parsePeers(reply)}
		view.self()
		view.owners()
		for _, p := range view.peers {
			if p.address == "" {
				t.Errorf("a peer without an address: %+v", p)
			}
			p.owns(1)
			for _, m := range p.moving {
				movingSlot(m)
			}
		}
	})
}

func TestReplies_TakeWhateverTheyAreGiven(t *testing.T) {
	for _, reply := range []any{nil, "", int64(1), []any{}, []any{nil}, []any{int64(1), "x", []any{}}, map[any]any{}} {
		words(reply)
		pairs(reply)
		rows(reply)
		lines(reply)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "x:y"}, lines("# Head\r\na:1\r\nb:x:y\r\n")); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]map[string]string{{"a": "1"}, {"b": "2"}}, rows([]any{
		[]any{"a", int64(1)}, []any{"b", "2", "odd"},
	})); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestReports_SkipsReplicasThatAreStillCopying(t *testing.T) {
	got := reports(map[string]string{
		"master_repl_offset": "100",
		"slave0":             "ip=10.0.0.2,port=6379,state=online,offset=90,lag=4",
		"slave1":             "ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0",
	})
	want := []replicaReport{{address: "10.0.0.2:6379", lag: 4 * time.Second, behind: 10}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(replicaReport{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseClients_TellsReplicasAndSentinelsApart(t *testing.T) {
	got := parseClients("id=3 addr=10.0.0.2:4 name= flags=S user=replication cmd=replconf\n" +
		"id=4 addr=10.0.1.1:5 name=sentinel-06f3dad5-cmd flags=N user=sentinel cmd=ping\n" +
		"id=5 addr=10.0.1.1:6 name=sentinel-06f3dad5-pubsub flags=P user=sentinel cmd=subscribe\n" +
		"id=6 addr=10.0.1.9:7 name= flags=N user=ratelimit cmd=evalsha\nnonsense\n")
	want := map[string][]string{"replica": {"replication"}, "sentinel": {"sentinel"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseBufferLimit_FindsTheReplicas(t *testing.T) {
	for setting, want := range map[string]bufferLimit{
		"normal 0 0 0 slave 268435456 67108864 60 pubsub 1 2 3": {268435456, 67108864, time.Minute},
		"replica 1 2 3": {1, 2, 3 * time.Second},
	} {
		if got, ok := parseBufferLimit(setting); !ok || got != want {
			t.Errorf("parseBufferLimit(%q) = %v, %t, want %v", setting, got, ok, want)
		}
	}
	for _, setting := range []string{"", "normal 0 0 0", "slave 1 2", "slave a b c"} {
		if got, ok := parseBufferLimit(setting); ok {
			t.Errorf("parseBufferLimit(%q) = %v", setting, got)
		}
	}
}

func TestParseVersion_ComparesByNumbers(t *testing.T) {
	for text, want := range map[string]version{"7.0.15": {7, 0, 15}, "6.2": {6, 2, 0}, "255.255.255": {255, 255, 255}} {
		if got, ok := parseVersion(text); !ok || got != want {
			t.Errorf("parseVersion(%q) = %v, %t", text, got, ok)
		}
	}
	if _, ok := parseVersion("unstable"); ok {
		t.Error("parseVersion(unstable) is a version")
	}
	if !(version{6, 2, 20}).before(version{7, 0, 0}) || (version{7, 0, 10}).before(version{7, 0, 9}) {
		t.Error("versions are compared as text")
	}
}

func TestPercentile_IsByTheNearestRank(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for p, want := range map[int]time.Duration{50: 50, 99: 99, 100: 100, 0: 1} {
		if got := percentile(hundred, p); got != want {
			t.Errorf("percentile(%d) = %d, want %d", p, got, want)
		}
	}
	if got := percentile(hundred[:1], 99); got != 1 {
		t.Errorf("of one: %d", got)
	}
}
