package rotation_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/process"
)

// page is docs/rotation.md: the commands of each section, by its title. Those before the first section come first, and
// the very first of these are about somebody else's machines: the test has others in their place.
type page struct {
	helpers  string
	sections []section
}

type section struct{ title, commands string }

func readPage(t *testing.T) page {
	t.Helper()
	root, err := process.Root()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "docs", "rotation.md"))
	if err != nil {
		t.Fatal(err)
	}
	var p page
	for _, text := range strings.Split(string(content), "\n## ")[1:] {
		title, rest, _ := strings.Cut(text, "\n")
		blocks := commands(rest)
		switch {
		case title == "Before" && len(blocks) == 2:
			p.helpers = blocks[1]
		case title == "Before":
			t.Fatalf("%q has %d blocks of commands, want machines and helpers", title, len(blocks))
		case len(blocks) > 0:
			p.sections = append(p.sections, section{title, strings.Join(blocks, "")})
		}
	}
	return p
}

// commands are the blocks of shell in a text.
func commands(text string) []string {
	var blocks []string
	for _, rest := range strings.Split(text, "```sh\n")[1:] {
		block, _, _ := strings.Cut(rest, "```")
		blocks = append(blocks, block)
	}
	return blocks
}

// run executes the commands of a section, in a shell that stops at the first one that fails.
func (p page) run(t *testing.T, s section, machines map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-euc", p.helpers+s.commands)
	cmd.WaitDelay = time.Second // for what the shell was waiting for
	cmd.Env = os.Environ()
	for name, value := range machines {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%s: %v\n%s", s.title, err, out)
	}
}
