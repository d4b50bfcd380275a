package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Root is the directory of the checkout: the nearest one upwards from the working directory that holds go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("process: %w", err)
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("process: %w", err)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("process: the working directory is not inside the checkout: no go.mod above it")
		}
		dir = parent
	}
}

// Envoy is the path of an Envoy that envoy/envoy.yaml was tried with. scripts/envoy.sh fetches it on first use.
func Envoy(ctx context.Context) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(root, "scripts", "envoy.sh"))
	cmd.Stderr = &said
	path, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("process: find Envoy: %w\n%s", err, said.String())
	}
	return strings.TrimSpace(string(path)), nil
}
