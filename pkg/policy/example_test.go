package policy_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/honestlimit/ratelimit/pkg/policy"
)

const exampleFile = `
domain: mesh
policies:
  - endpoint_id: pdftalk.ingest
    descriptor:
      - {key: endpoint_id, value: pdftalk.ingest}
      - {key: tenant}
    sliding_window: {limit: 1000, window: 60s}
    fail_mode: fail_closed
`

func ExampleParse() {
	set, err := policy.Parse("mesh.yaml", []byte(exampleFile))
	if err != nil {
		log.Fatal(err)
	}
	asked := []policy.Entry{{Key: "endpoint_id", Value: "pdftalk.ingest"}, {Key: "tenant", Value: "acme"}}
	p := set.Domain("mesh").Match(asked)
	fmt.Println(p.Pattern)
	fmt.Println(p.BucketKey(asked))
	// Output:
	// endpoint_id=pdftalk.ingest, tenant=*
	// rl:v1:{c0moEZm_bUv1AUH49U2ONA}:pdftalk.ingest:1
}

func ExampleLoad() {
	dir, err := os.MkdirTemp("", "policies")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "mesh.yaml")
	if err := os.WriteFile(name, []byte(exampleFile), 0o600); err != nil {
		log.Fatal(err)
	}
	set, err := policy.Load(dir)
	fmt.Println(set.Domains(), err)
	// Output: [mesh] <nil>
}

func ExampleNewSource() {
	dir, err := os.MkdirTemp("", "policies")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "mesh.yaml")
	if err := os.WriteFile(name, []byte(exampleFile), 0o600); err != nil {
		log.Fatal(err)
	}
	source, err := policy.NewSource(name, policy.SourceConfig{})
	if err != nil {
		log.Fatal(err)
	}
	if err := source.Load(); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("domain: [mesh\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	report := source.Reload() // as Watch does when the file changes
	for _, d := range report.Domains {
		fmt.Println(d.Name, d.Outcome, len(source.Current().Domain(d.Name).Policies()))
	}
	// Output: mesh kept 1
}
