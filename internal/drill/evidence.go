package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/topology"
)

// evidenceTimeout bounds the last look at nodes that may not answer.
const evidenceTimeout = 10 * time.Second

// keep leaves a folder with everything that explains a run: logs of all processes, INFO and CLIENT LIST of all nodes,
// state and metrics of the service, every look and every answer. It holds no password: configurations stay behind.
func (st *stage) keep(ctx context.Context, j *journal.Journal, r *journal.Report) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, evidenceTimeout)
	defer cancel()
	name := fmt.Sprintf("drill-%v-%s-%s", r.Category, r.Variant, j.Started.UTC().Format("20060102T150405"))
	folder := filepath.Join(st.cfg.Evidence, name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("drill: %w", err)
	}
	r.Evidence = folder
	files := map[string][]byte{
		"report.json": lines(r), "rounds.jsonl": jsonLines(j.Rounds), "answers.jsonl": jsonLines(j.Answers),
	}
	for _, page := range []string{"state", "metrics"} {
		text, err := st.service.page(ctx, "/"+page)
		files["service-"+page+".txt"] = orError(text, err)
	}
	log, err := os.ReadFile(st.service.logPath)
	files["service.log"] = orError(log, err)
	for _, n := range st.set.Nodes() {
		log, err := n.Log()
		files[n.Name()+".log"] = orError([]byte(log), err)
		files[n.Name()+".info.txt"] = ask(ctx, n, "info")
		files[n.Name()+".clients.txt"] = ask(ctx, n, "client", "list")
	}
	var errs []error
	for name, content := range files {
		errs = append(errs, os.WriteFile(filepath.Join(folder, name), content, 0o644))
	}
	return folder, errors.Join(errs...)
}

func ask(ctx context.Context, n *topology.Node, command ...any) []byte {
	text, err := n.Client().Do(ctx, command...).Text()
	return orError([]byte(strings.ReplaceAll(text, "\r\n", "\n")), err)
}

// orError is the content, or why there is none.
func orError(content []byte, err error) []byte {
	if err != nil {
		return []byte("not to be had: " + err.Error() + "\n")
	}
	return content
}

func lines(v any) []byte {
	text, err := json.MarshalIndent(v, "", "  ")
	return orError(append(text, '\n'), err)
}

func jsonLines[T any](list []T) []byte {
	var all []byte
	for _, v := range list {
		text, err := json.Marshal(v)
		all = append(append(all, orError(text, err)...), '\n')
	}
	return all
}
