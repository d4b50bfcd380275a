// Package arch_test holds the rule of who may import whom, as docs/architecture.md draws it.
package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/honestlimit/ratelimit/"

// rooms lists what each package of the product may import of the product. A package that is not listed is a fault,
// so a new room has to say where it belongs.
var rooms = map[string][]string{
	"pkg/limit":           {},
	"pkg/policy":          {"pkg/limit"},
	"pkg/emergency":       {"pkg/limit"},
	"pkg/failure":         {"pkg/limit"},
	"pkg/rls":             {"pkg/limit", "pkg/policy", "pkg/failure"},
	"scripts":             {"pkg/limit"},
	"envoy":               {},
	"internal/memstore":   {"pkg/limit", "pkg/failure"},
	"internal/redisstore": {"pkg/limit", "pkg/failure", "scripts"},
	"internal/sentinel":   {"pkg/failure", "internal/redisstore"},
	"internal/cluster":    {"pkg/limit", "pkg/failure", "internal/redisstore"},
	"internal/vitals":     {"internal/redisstore"},
	"internal/load":       {},
	"internal/preflight":  {"pkg/limit", "pkg/failure", "scripts", "internal/redisstore"},
	"internal/process":    {},
	"internal/drill": {
		"pkg/policy", "scripts", "internal/redisstore", "internal/load", "internal/process", "internal/topology",
		"internal/drill/journal",
	},
	"internal/drill/journal": {"pkg/failure"},
	"internal/drill/page":    {"pkg/failure", "internal/drill/journal"},
	"internal/topology":      {"deploy/redis", "internal/process"},
	"deploy/redis":           {},
	"internal/telemetry": {
		"pkg/limit", "pkg/policy", "pkg/failure", "pkg/rls", "internal/memstore", "internal/redisstore",
		"internal/sentinel", "internal/cluster", "internal/vitals",
	},
	"cmd/ratelimit": {
		"pkg/limit", "pkg/policy", "pkg/failure", "pkg/emergency", "pkg/rls", "internal/memstore",
		"internal/redisstore", "internal/sentinel", "internal/cluster", "internal/telemetry", "internal/load",
		"internal/preflight", "internal/vitals",
		"internal/drill", "internal/drill/journal", "internal/drill/page",
	},
}

// outside lists who may import a library that the rest must not know.
var outside = map[string][]string{
	"github.com/redis/go-redis/": {
		"internal/redisstore", "internal/cluster", "internal/topology", "internal/preflight", "internal/drill",
	},
	"github.com/prometheus/client_golang/":   {"internal/telemetry", "cmd/ratelimit"},
	"github.com/rs/zerolog":                  {"internal/telemetry", "cmd/ratelimit"},
	"google.golang.org/grpc":                 {"pkg/rls", "internal/telemetry", "internal/load", "cmd/ratelimit"},
	"github.com/envoyproxy/go-control-plane": {"pkg/rls", "internal/load", "cmd/ratelimit"},
	"go.yaml.in/yaml/":                       {"pkg/policy"},
	"github.com/HdrHistogram/":               {"internal/load"},
	"github.com/KimMachineGun/":              {"cmd/ratelimit"},
	"github.com/alecthomas/kong":             {"cmd/ratelimit"},
	"github.com/fsnotify/fsnotify":           {"pkg/policy", "cmd/ratelimit"},
}

// testOnly are packages that exist for tests and for people who try things out; no product package may import them.
var testOnly = []string{"internal/redistest", "internal/storetest", "test/"}

type pkg struct {
	ImportPath string
	Imports    []string
}

// product returns every package of the module that ends up in the binary or is offered to others.
func product(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, module)
		if !isTestOnly(p.ImportPath) {
			all = append(all, p)
		}
	}
	if len(all) < len(rooms) {
		t.Fatalf("go list found %d packages, the rooms are %d", len(all), len(rooms))
	}
	return all
}

func isTestOnly(path string) bool {
	return slices.ContainsFunc(testOnly, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}

func TestRooms_ImportOnlyWhatTheyMay(t *testing.T) {
	for _, p := range product(t) {
		allowed, known := rooms[p.ImportPath]
		if !known {
			t.Errorf("%s is in no room: add it to rooms and to docs/architecture.md", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			own, ok := strings.CutPrefix(imported, module)
			if ok && !slices.Contains(allowed, own) {
				t.Errorf("%s imports %s, it may import only %v", p.ImportPath, own, allowed)
			}
		}
	}
}

func TestRooms_KeepLibrariesOut(t *testing.T) {
	for _, p := range product(t) {
		for _, imported := range p.Imports {
			for library, users := range outside {
				if strings.HasPrefix(imported, library) && !slices.Contains(users, p.ImportPath) {
					t.Errorf("%s imports %s, only %v may", p.ImportPath, imported, users)
				}
			}
		}
	}
}
