package policy_test

import (
	"os"
	"strings"
	"testing"
)

// The example that people copy from must be right.
func TestReadme_example(t *testing.T) {
	content, err := os.ReadFile("README.md")
	must(t, err)
	_, example, _ := strings.Cut(string(content), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	if got := len(parse(t, example).Domain("mesh").Policies()); got != 2 {
		t.Errorf("the example has %d policies, want 2", got)
	}
}
