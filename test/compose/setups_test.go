package compose_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// setUp starts another set-up of Redis in place of the one that runs, whose services are named.
func (p *project) setUp(t *testing.T, name string, instead ...string) {
	t.Helper()
	if len(instead) > 0 {
		p.compose(t, append([]string{"rm", "--stop", "--force", "-v"}, instead...)...)
	}
	p.options = []string{"--env-file", filepath.Join("deploy", "compose", name+".env")}
	p.compose(t, "up", "--detach")
}

// The master dies, and the next one decides.
func (p *project) failsOver(t *testing.T) {
	p.setUp(t, "ha")
	p.awaitDecisions(t, p.acme)
	for _, sentinel := range sentinels {
		p.await(t, sentinel+" to know everybody", func(ctx context.Context) error {
			return p.knows(ctx, sentinel, "slaves=2,sentinels=3")
		})
	}
	p.compose(t, "kill", "redis-1")
	killed := time.Now()
	p.awaitDecisions(t, p.globex)
	t.Logf("decisions by the next master %v after the first one was killed", time.Since(killed).Round(time.Millisecond))
}

var (
	sentinels = []string{"sentinel-1", "sentinel-2", "sentinel-3"}
	dataNodes = []string{"redis-1", "redis-2", "redis-3"}
)

func (p *project) decidesInCluster(t *testing.T) {
	p.setUp(t, "cluster", append(dataNodes, sentinels...)...)
	p.awaitDecisions(t, p.acme)
	p.awaitDecisions(t, p.globex)
}

// knows looks for text in what a Sentinel says about itself.
func (p *project) knows(ctx context.Context, sentinel, text string) error {
	const ask = `read -r REDISCLI_AUTH </passwords/servers/OPERATOR_PASSWORD && export REDISCLI_AUTH &&
		exec redis-cli --user operator -p 26379 info sentinel`
	out, err := p.run(ctx, "exec", "-T", sentinel, "sh", "-c", ask)
	if err == nil && !strings.Contains(out, text) {
		err = fmt.Errorf("no %q in %s", text, out)
	}
	return err
}
