package main

import (
	"strings"
	"testing"
)

func TestDrill_ListShowsEveryVariant(t *testing.T) {
	r := ratelimit(t, "drill", "--list")
	if r.code != exitOK {
		t.Fatalf("exit code %d: %s", r.code, r.errOut)
	}
	for _, want := range []string{
		"master-exit    stop", "master-crash   kill", "master-crash   freeze", "partition      master",
		"partition      service", "partition      minority", "replica-lag    freeze", "replica-lag    slow",
		"sentinel-loss  two", "sentinel-loss  master", "cluster        kill", "cluster        reshard",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not in the list:\n%s", want, r.out)
		}
	}
}

func TestDrill_SaysWhatIsWrongWithItsFlags(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no category", nil, `CATEGORY is "", must be one of master-exit`},
		{"an unknown category", []string{"earthquake"}, `CATEGORY is "earthquake"`},
		{"an unknown variant", []string{"master-crash", "--variant", "melt"}, `master-crash has no "melt", only kill, freeze`},
		{"a variant of all", []string{"all", "--variant", "kill"}, "--variant: a variant is of one category, not of all"},
		{"one variant and every", []string{"partition", "--variant", "master", "--every"}, "exclude each other"},
		{"a rate that tells nothing", []string{"master-exit", "--rate", "1/s"}, "rate must be from 20"},
		{"a negative margin", []string{"master-exit", "--margin=-1s"}, "margin must be at least"},
		{"a fault without --attach", []string{"master-exit", "--inject", "true"}, "--inject: is about a deployment of yours, and needs --attach"},
		{"a store without --attach", []string{"master-exit", "--redis", "sentinel://s1/m"}, "--redis: is about a deployment of yours"},
		{"--attach to nothing", []string{"--attach"}, "--redis: must name the Sentinels"},
		{"--attach to one server", []string{"--attach", "--redis", "redis://h"}, "--redis: must name the Sentinels"},
		{"--attach with a category", []string{"partition", "--attach", "--redis", "sentinel://s1/m"}, "--attach: breaks nothing"},
		{"a service without a question", []string{"--attach", "--redis", "sentinel://s1/m", "--service", "h:1"}, "--service: needs --domain and --ask"},
		{"a question without a service", []string{"--attach", "--redis", "sentinel://s1/m", "--domain", "d", "--ask", "a=b"}, "need --service"},
		{"a question that is none", []string{"--attach", "--redis", "sentinel://s1/m", "--service", "h:1", "--domain", "d", "--ask", "ab"}, `"ab" is not of the form KEY=VALUE`},
		{"a password in the URL", []string{"--attach", "--redis", "sentinel://u:secret@s1/m"}, "holds a password"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ratelimit(t, append([]string{"drill"}, c.args...)...)
			if r.code != exitUsage {
				t.Errorf("exit code %d, want %d", r.code, exitUsage)
			}
			if !strings.Contains(r.errOut, c.want) {
				t.Errorf("said %q, want %q in it", r.errOut, c.want)
			}
			if strings.Contains(r.errOut, "secret") {
				t.Error("the password is shown")
			}
		})
	}
}

// A failover that is ordered skips what a drill is for, and whoever relies on it is told.
func TestDrill_WarnsOfAnOrderedFailover(t *testing.T) {
	args := []string{"drill", "--attach", "--redis", "sentinel://127.0.0.1:1/m", "--inject"}
	if r := ratelimit(t, append(args, "redis-cli SENTINEL FAILOVER m")...); !strings.Contains(r.errOut, "warning: SENTINEL FAILOVER") {
		t.Errorf("said %q, want a warning", r.errOut)
	}
	r := ratelimit(t, append(args, "kubectl delete pod redis-0")...)
	if strings.Contains(r.errOut, "warning") {
		t.Errorf("said %q, want no warning", r.errOut)
	}
	if r.code != exitFault || !strings.Contains(r.errOut, "127.0.0.1:1") {
		t.Errorf("exit code %d and %q, want %d and the Sentinel that does not answer", r.code, r.errOut, exitFault)
	}
}
