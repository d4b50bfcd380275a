package policy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/honestlimit/ratelimit/pkg/policy"
)

// The example that people copy from must be right.
func TestReadme_example(t *testing.T) {
	if got := len(parse(t, readmeExample(t, 1)).Domain("mesh").Policies()); got != 2 {
		t.Errorf("the example has %d policies, want 2", got)
	}
}

// The keys that it shows are those that the example gives.
func TestReadme_keysOfTheShardedExample(t *testing.T) {
	d := parse(t, readmeExample(t, 2)).Domain("api")
	for _, asked := range [][]policy.Entry{descriptor("tenant", "acme"), descriptor("tenant", "acme", "path", "/a")} {
		var entries []string
		for _, e := range asked {
			entries = append(entries, "`"+e.Key+"="+e.Value+"`")
		}
		row := "| " + strings.Join(entries, ", ") + " | `" + d.Match(asked).BucketKey(asked) + "` |\n"
		if !strings.Contains(readme(t), row) {
			t.Errorf("README.md does not have the row %s", row)
		}
	}
}

func readme(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("README.md")
	must(t, err)
	return string(content)
}

// readmeExample is the YAML block of that number, from 1.
func readmeExample(t *testing.T, number int) string {
	t.Helper()
	example := strings.Split(readme(t), "```yaml\n")[number]
	example, _, _ = strings.Cut(example, "```")
	return example
}
