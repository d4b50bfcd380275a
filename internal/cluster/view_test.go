package cluster_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/honestlimit/ratelimit/internal/cluster"
)

// nodes spells CLUSTER NODES with one line for each member: id, address, flags, epoch and slots, separated by spaces.
func nodes(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		f := strings.SplitN(line, " ", 5)
		b.WriteString(f[0] + " " + f[1] + " " + f[2] + " - 0 0 " + f[3] + " connected")
		if len(f) > 4 {
			b.WriteString(" " + f[4])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Members of a Cluster in the tests below.
const (
	oldA  = "aaa 10.0.0.1:7000@17000 master 1 0-8191"
	b     = "bbb 10.0.0.2:7000@17000 master 2 8192-16383"
	newA  = "ccc 10.0.0.3:7000@17000 master 3 0-8191" // the replica that took over from aaa
	deadA = "aaa 10.0.0.1:7000@17000 master,fail 1"
)

// me makes a line that of the node which is asked.
func me(line string) string { return strings.Replace(line, "master", "myself,master", 1) }

func TestMerge_WhoOwnsTheSlots(t *testing.T) {
	healthy := []string{nodes(me(oldA), b), nodes(oldA, me(b))}
	for name, c := range map[string]struct {
		before, now []string
		want        string // owner of slot 0
		shown       string
	}{
		"all agree":             {nil, healthy, "10.0.0.1:7000", "10.0.0.1:7000 10.0.0.2:7000"},
		"one answers":           {nil, healthy[1:], "10.0.0.1:7000", "10.0.0.1:7000 10.0.0.2:7000"},
		"after a failover":      {healthy, []string{nodes(deadA, me(b), newA), nodes(deadA, b, me(newA))}, "10.0.0.3:7000", "10.0.0.2:7000 10.0.0.3:7000"},
		"one has not heard yet": {healthy, []string{nodes(oldA, me(b), "ccc 10.0.0.3:7000@17000 slave 1"), nodes(deadA, b, me(newA))}, "10.0.0.3:7000", "10.0.0.2:7000 10.0.0.3:7000"},
		"the old master is back from the dead": {
			[]string{nodes(deadA, b, me(newA))},
			[]string{nodes(me(oldA), b, "ccc 10.0.0.3:7000@17000 slave 1"), nodes(deadA, me(b), newA)},
			"10.0.0.3:7000", "10.0.0.2:7000 10.0.0.3:7000",
		},
		"the old master alone answers": {
			[]string{nodes(deadA, b, me(newA))},
			[]string{nodes(me(oldA), b, "ccc 10.0.0.3:7000@17000 slave 1")},
			"10.0.0.3:7000", "10.0.0.2:7000 10.0.0.3:7000",
		},
		"a master dies and nobody took over": {healthy, []string{nodes("aaa 10.0.0.1:7000@17000 master,fail 1 0-8191", me(b))}, "10.0.0.1:7000", "10.0.0.1:7000 10.0.0.2:7000"},
		"a slot was given away, says who gave it": {
			[]string{nodes(me(oldA), b)},
			[]string{nodes("aaa 10.0.0.1:7000@17000 myself,master 1 1-8191", "bbb 10.0.0.2:7000@17000 master 4 0 8192-16383")},
			"10.0.0.2:7000", "10.0.0.1:7000 10.0.0.2:7000",
		},
		"a slot is on its way": {nil, []string{nodes("aaa 10.0.0.1:7000@17000 myself,master 1 0-8191 [0->-bbb]", b)}, "10.0.0.1:7000", "10.0.0.1:7000 10.0.0.2:7000"},
		"nobody owns it any more": {
			healthy, []string{nodes("aaa 10.0.0.1:7000@17000 myself,master 1 1-8191", b)}, "", "10.0.0.1:7000 10.0.0.2:7000",
		},
		"nobody owns it any more, which one has not heard": {
			nil,
			[]string{nodes("aaa 10.0.0.1:7000@17000 myself,master 1 1-8191", b), nodes(oldA, me(b))},
			"",
			"10.0.0.1:7000 10.0.0.2:7000",
		},
		"made anew at the same addresses": {
			healthy, []string{nodes("xxx 10.0.0.5:7000@17000 myself,master 0 0-16383")}, "10.0.0.5:7000", "10.0.0.5:7000",
		},
		"a master without slots":                 {nil, []string{nodes(me(oldA), b, "ddd 10.0.0.4:7000@17000 master 0")}, "10.0.0.1:7000", "10.0.0.1:7000 10.0.0.2:7000 10.0.0.4:7000"},
		"a node that is only meeting the others": {nil, []string{nodes(me(oldA), b, "ddd 10.0.0.4:7000@17000 handshake 0", "eee :0@0 master,noaddr 0")}, "10.0.0.1:7000", "10.0.0.1:7000 10.0.0.2:7000"},
		"somebody of another Cluster answers": {
			healthy,
			[]string{nodes(me(oldA), b), nodes(oldA, me(b)), nodes("zzz 10.0.0.9:7000@17000 myself,master 99 0-16383")},
			"10.0.0.1:7000", "10.0.0.1:7000 10.0.0.2:7000",
		},
		"somebody who was forgotten answers": {
			nil,
			[]string{nodes(me(oldA), b), nodes(oldA, me(b)), nodes(oldA, b, "zzz 10.0.0.9:7000@17000 myself,master 99 0-16383")},
			"10.0.0.1:7000", "10.0.0.1:7000 10.0.0.2:7000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var topology *cluster.Topology
			for n, views := range [][]string{c.before, c.now} {
				if len(views) == 0 {
					continue
				}
				var err error
				if topology, err = cluster.Merge(topology, time.Duration(n)*cluster.Distrust, views...); err != nil {
					t.Fatal(err)
				}
			}
			if got := topology.OwnerOf(0); got != c.want {
				t.Errorf("slot 0 is owned by %q, want %q", got, c.want)
			}
			shown := topology.Shown()
			slices.Sort(shown)
			if got := strings.Join(shown, " "); got != c.shown {
				t.Errorf("shards at %s, want %s", got, c.shown)
			}
		})
	}
}

// TestMerge_ANodeWithoutMemory: one that was restarted without its configuration, and answers alone, changes nothing,
// unless that lasts.
func TestMerge_ANodeWithoutMemory(t *testing.T) {
	believed, err := cluster.Merge(nil, 0, nodes(me(oldA), b), nodes(oldA, me(b)))
	if err != nil {
		t.Fatal(err)
	}
	empty := nodes("new 10.0.0.1:7000@17000 myself,master 0")
	for after, want := range map[time.Duration]string{cluster.Distrust - 1: "10.0.0.1:7000", cluster.Distrust: ""} {
		got, err := cluster.Merge(believed, after, empty)
		if err != nil {
			t.Fatal(err)
		}
		if got.OwnerOf(0) != want {
			t.Errorf("after %v slot 0 is owned by %q, want %q", after, got.OwnerOf(0), want)
		}
	}
	got, err := cluster.Merge(believed, 0, empty, nodes("aaa 10.0.0.1:7000@17000 master,fail 1 0-8191", me(b)))
	if err != nil {
		t.Fatal(err)
	}
	if got.OwnerOf(0) != "10.0.0.1:7000" {
		t.Errorf("beside one that remembers, slot 0 is owned by %q", got.OwnerOf(0))
	}
}

func TestParseView_Addresses(t *testing.T) {
	for name, c := range map[string]struct {
		listed string
		slots  []any // of CLUSTER SLOTS
		want   string
	}{
		"ipv4":                     {"10.0.0.1:7000@17000", nil, "10.0.0.1:7000"},
		"before 7.0":               {"10.0.0.1:7000", nil, "10.0.0.1:7000"},
		"ipv6":                     {"fd00::1:7000@17000", nil, "[fd00::1]:7000"},
		"with a hostname":          {"10.0.0.1:7000@17000,a.example", nil, "10.0.0.1:7000"},
		"more behind it":           {"10.0.0.1:7000@17000,,shard-id=abc", nil, "10.0.0.1:7000"},
		"it does not know its ip":  {":7000@17000", nil, "10.0.0.99:7000"},
		"hostnames are preferred":  {"10.0.0.1:7000@17000,a.example", slots("a.example"), "a.example:7000"},
		"the endpoint is unknown":  {"10.0.0.1:7000@17000", slots(nil), "10.0.0.99:7000"},
		"no hostname is announced": {"10.0.0.1:7000@17000", slots("?"), "10.0.0.1:7000"},
		"slots make no sense":      {"10.0.0.1:7000@17000", []any{"x", []any{1}, []any{1, 2, 3}, []any{1, 2, []any{nil, nil, nil}}}, "10.0.0.1:7000"},
	} {
		t.Run(name, func(t *testing.T) {
			const asked = "10.0.0.99:7000"
			got, err := cluster.ParseView(nodes("aaa "+c.listed+" myself,master 1 0-16383"), asked, cluster.ParseEndpoints(c.slots, asked))
			if err != nil {
				t.Fatal(err)
			}
			if address := cluster.AddressOf(got); address != c.want {
				t.Errorf("address %q, want %q", address, c.want)
			}
		})
	}
}

// slots is what CLUSTER SLOTS says of the only node.
func slots(endpoint any) []any {
	return []any{[]any{int64(0), int64(16383), []any{endpoint, int64(7000), "aaa", []any{}}}}
}

func TestParseView_RefusesWhatIsNone(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":               "",
		"an error page":         "<html>\n",
		"nobody is myself":      nodes(oldA, b),
		"an epoch that is none": strings.Replace(nodes(me(oldA)), " 1 connected", " x connected", 1),
		"a slot beyond":         nodes("aaa 10.0.0.1:7000@17000 myself,master 1 0-16384"),
		"slots in reverse":      nodes("aaa 10.0.0.1:7000@17000 myself,master 1 9-3"),
		"slots that are none":   nodes("aaa 10.0.0.1:7000@17000 myself,master 1 all"),
	} {
		if _, err := cluster.ParseView(text, "10.0.0.99:7000", nil); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestPointed_Addresses(t *testing.T) {
	got := map[string]string{}
	for _, address := range []string{"10.0.0.1:7000", ":7000", "?:7000", "fd00::1:7000", "[fd00::1]:7000", "a.example:7000", "odd"} {
		got[address] = cluster.Pointed("10.0.0.99:6379", address)
	}
	want := map[string]string{
		"10.0.0.1:7000": "10.0.0.1:7000", ":7000": "10.0.0.99:7000", "?:7000": "10.0.0.99:7000",
		"fd00::1:7000": "[fd00::1]:7000", "[fd00::1]:7000": "[fd00::1]:7000", "a.example:7000": "a.example:7000", "odd": "odd",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

func FuzzParseView(f *testing.F) {
	f.Add(nodes(me(oldA), b, newA))
	f.Add(nodes("aaa fd00::1:7000@17000,host,shard-id=x myself,master 1 0-5 7 [93-<-bbb]"))
	f.Fuzz(func(t *testing.T, text string) {
		if topology, err := cluster.Merge(nil, 0, text); err == nil {
			topology.OwnerOf(0)
		}
	})
}
