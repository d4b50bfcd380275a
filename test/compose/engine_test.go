package compose_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/process"
)

// engine is a container engine that compose talks to.
type engine struct {
	host string // As DOCKER_HOST; empty for the docker command's default.
	// own is whether this test started it, so that its images are this test's too.
	own bool
}

// newEngine starts an engine if that is possible, finds one otherwise, and ends the test if there is none.
func newEngine(t *testing.T) *engine {
	t.Helper()
	if os.Geteuid() == 0 {
		return startEngine(t)
	}
	out, err := exec.CommandContext(t.Context(), "docker", "info").CombinedOutput()
	if err != nil {
		t.Fatalf("this test needs a container engine: run it as root with dockerd installed (Debian: apt-get install "+
			"docker.io iptables), or as a user who may use a running one; docker info says: %v\n%s", err, out)
	}
	return &engine{host: os.Getenv("DOCKER_HOST")}
}

// startEngine starts a dockerd that shares nothing with another one: no data, no socket, no bridge, no firewall rule.
func startEngine(t *testing.T) *engine {
	t.Helper()
	path, err := exec.LookPath("dockerd")
	if err != nil {
		path = "/usr/sbin/dockerd" // Where Debian puts it, and the PATH of an su shell does not look.
	}
	dir, err := os.MkdirTemp("", "engine") //nolint:usetesting // a socket's path must be short, t.TempDir is long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	socket := filepath.Join(dir, "docker.sock")
	p, err := process.Start(process.Config{
		Name: "dockerd", Path: path, Grace: 30 * time.Second,
		Args: []string{
			"--host", "unix://" + socket, "--data-root", filepath.Join(dir, "data"),
			"--exec-root", filepath.Join(dir, "exec"), "--pidfile", filepath.Join(dir, "pid"),
			"--storage-driver", "vfs", "--bridge", "none", "--iptables=false", "--ip6tables=false",
		},
	})
	if err != nil {
		t.Fatalf("%v (Debian: apt-get install docker.io iptables)", err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	e := &engine{host: "unix://" + socket, own: true}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ready := func(ctx context.Context) error {
		_, err := e.call(ctx, http.MethodGet, "/_ping", nil)
		return err
	}
	if err := p.AwaitReady(ctx, ready); err != nil {
		t.Fatal(err)
	}
	return e
}

// importImage makes an image of programs of this machine, the libraries they load, and nothing else.
func (e *engine) importImage(t *testing.T, tag string, programs ...string) {
	t.Helper()
	repository, version, _ := strings.Cut(tag, ":")
	query := url.Values{
		"fromSrc": {"-"}, "repo": {repository}, "tag": {version}, "changes": {"ENV PATH=/usr/local/bin"},
	}
	answer, err := e.call(t.Context(), http.MethodPost, "/images/create?"+query.Encode(), archive(t, programs))
	if err != nil || strings.Contains(answer, `"error"`) {
		t.Fatalf("import %s: %v %s", tag, err, answer)
	}
}

// healthy is whether the container of a compose service reports itself so.
func (e *engine) healthy(ctx context.Context, service string) error {
	filters := fmt.Sprintf(`{"label": ["com.docker.compose.service=%s"]}`, service)
	answer, err := e.call(ctx, http.MethodGet, "/containers/json?filters="+url.QueryEscape(filters), nil)
	if err != nil {
		return err
	}
	var containers []struct{ Status string }
	if err := json.Unmarshal([]byte(answer), &containers); err != nil {
		return err
	}
	for _, c := range containers {
		if strings.Contains(c.Status, "(healthy)") {
			return nil
		}
	}
	return fmt.Errorf("containers of %s: %+v", service, containers)
}

// call speaks the engine's HTTP API.
func (e *engine) call(ctx context.Context, method, path string, body io.Reader) (string, error) {
	socket := strings.TrimPrefix(e.host, "unix://")
	if socket == "" {
		socket = "/var/run/docker.sock"
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://engine"+path, body)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s: %s", path, resp.Status, text)
	}
	return string(text), nil
}

// archive is a tar of the programs, in /usr/local/bin, and of their libraries, where they are on this machine.
func archive(t *testing.T, programs []string) io.Reader {
	t.Helper()
	files := map[string]string{}
	for _, program := range programs {
		files["/usr/local/bin/"+filepath.Base(program)] = program
		for _, library := range libraries(t, program) {
			files[library] = library
		}
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	// What the archive does not name the engine makes for root alone, and root without privileges is not let in either.
	for _, dir := range directories(files) {
		if err := w.WriteHeader(&tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
	}
	for name, source := range files {
		data, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		header := &tar.Header{Name: strings.TrimPrefix(name, "/"), Mode: 0o755, Size: int64(len(data))}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// directories are those that files, by their absolute paths, are in, each before what is in it.
func directories(files map[string]string) []string {
	all := map[string]bool{}
	for name := range files {
		for dir := filepath.Dir(name); dir != "/"; dir = filepath.Dir(dir) {
			all[strings.TrimPrefix(dir, "/")] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// libraryPath finds the absolute paths in what ldd prints.
var libraryPath = regexp.MustCompile(`(?m)(/\S+) \(0x`)

func libraries(t *testing.T, program string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ldd", program).CombinedOutput()
	if err != nil {
		t.Fatalf("ldd %s: %v\n%s", program, err, out)
	}
	var paths []string
	for _, match := range libraryPath.FindAllStringSubmatch(string(out), -1) {
		paths = append(paths, match[1])
	}
	return paths
}
