package redisconf_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	redisconf "github.com/honestlimit/ratelimit/deploy/redis"
)

// values are what all templates together need.
func values() map[string]string {
	return map[string]string{
		"REDIS_DIR": "/data", "REDIS_MASTER_HOST": "192.0.2.1", "REDIS_MASTER_PORT": "6379", "SENTINEL_QUORUM": "2",
		"RATELIMIT_REDIS_PASSWORD": "a&b", "RATELIMIT_SENTINEL_PASSWORD": "c$1", "REPLICATION_PASSWORD": "${NESTED}",
		"SENTINEL_REDIS_PASSWORD": "e/f", "SENTINEL_PEER_PASSWORD": "g%s", "OPERATOR_PASSWORD": "~!h|",
	}
}

func templates() []string {
	return []string{
		redisconf.Redis, redisconf.Cluster, redisconf.Sentinel,
		redisconf.Users, redisconf.ClusterUsers, redisconf.SentinelUsers,
	}
}

func TestRender_FillsEverythingIn(t *testing.T) {
	for _, template := range templates() {
		text, err := redisconf.Render(template, values())
		if err != nil {
			t.Errorf("%s: %v", template, err)
		}
		for line := range strings.Lines(text) {
			filled := strings.ReplaceAll(line, values()["REPLICATION_PASSWORD"], "")
			if !strings.HasPrefix(line, "#") && strings.Contains(filled, "${") {
				t.Errorf("%s: %q is left", template, line)
			}
		}
	}
}

func TestRender_MakesRulesOfAccounts(t *testing.T) {
	text, err := redisconf.Render(redisconf.SentinelUsers, values())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "user ") {
			t.Errorf("%q would be refused by Redis", line)
		}
	}
	want := "user peer on >g%s resetkeys resetchannels &__sentinel__:hello -@all " +
		"+ping +publish +client|setname +sentinel|is-master-down-by-addr\n"
	if !strings.Contains(text, want) {
		t.Errorf("the accounts are\n%swant among them\n%s", text, want)
	}
}

func TestRender_RefusesWhatWouldMeanSomethingElse(t *testing.T) {
	for name, bad := range map[string]string{
		"empty": "", "a space": "a b", "a line": "a\nb", "a quote": `a"b`, "an apostrophe": "a'b", "a backslash": `a\b`,
		"a number sign": "a#b", "another script": "ä",
	} {
		set := values()
		set["OPERATOR_PASSWORD"] = bad
		_, err := redisconf.Render(redisconf.Users, set)
		if err == nil || !strings.Contains(err.Error(), "OPERATOR_PASSWORD") {
			t.Errorf("%s: Render = %v, want an error that names the value", name, err)
		}
		if out, err := script(redisconf.Users, set); err == nil || out != "" {
			t.Errorf("%s: render.sh = %q, %v, want an error and nothing else", name, out, err)
		}
	}
	if _, err := redisconf.Render("nothing.conf", values()); err == nil {
		t.Error("a template that is not there is no error")
	}
}

func TestScript_RendersAsGoDoes(t *testing.T) {
	for _, template := range templates() {
		want, err := redisconf.Render(template, values())
		if err != nil {
			t.Fatal(err)
		}
		got, err := script(template, values())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-Go +script):\n%s", template, diff)
		}
	}
}

// script runs render.sh with nothing but the values in its environment, and the PATH.
func script(template string, values map[string]string) (string, error) {
	cmd := exec.Command("./render.sh", template)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	for name, value := range values {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	return out.String(), err
}
