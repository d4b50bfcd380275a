package policy_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/honestlimit/ratelimit/pkg/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// domainFile is a file with one policy of the domain, whose rate tells versions apart.
func domainFile(domain, id string, rate int) string {
	return fmt.Sprintf(`domain: %s
policies:
  - endpoint_id: %s
    descriptor: [{key: e, value: %s}]
    token_bucket: {rate: %d/s}
    fail_mode: fail_closed
`, domain, id, id, rate)
}

func write(tb testing.TB, dir, name, content string) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		tb.Fatal(err)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// loaded returns a source of path that has loaded it.
func loaded(tb testing.TB, path string, cfg policy.SourceConfig) *policy.Source {
	tb.Helper()
	s, err := policy.NewSource(path, cfg)
	must(tb, err)
	must(tb, s.Load())
	return s
}

// rates shows what is in force: the rate of every policy by domain and id.
func rates(s *policy.Source) map[string]int64 {
	got := map[string]int64{}
	for _, name := range s.Current().Domains() {
		for _, p := range s.Current().Domain(name).Policies() {
			got[name+"/"+p.Endpoint.ID] = p.Limit.Tokens()
		}
	}
	return got
}

func wantRates(tb testing.TB, s *policy.Source, want map[string]int64) {
	tb.Helper()
	if diff := cmp.Diff(want, rates(s)); diff != "" {
		tb.Errorf("in force (-want +got):\n%s", diff)
	}
}

func outcomes(r policy.Report) map[string]string {
	got := map[string]string{}
	for _, d := range r.Domains {
		got[d.Name] = d.Outcome.String()
	}
	return got
}

func wantOutcomes(tb testing.TB, r policy.Report, want map[string]string) {
	tb.Helper()
	if diff := cmp.Diff(want, outcomes(r)); diff != "" {
		tb.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func TestNewSource_refusesBadConfig(t *testing.T) {
	if _, err := policy.NewSource("", policy.SourceConfig{}); err == nil {
		t.Error("NewSource accepts an empty path")
	}
	_, err := policy.NewSource("x", policy.SourceConfig{Debounce: -1, Recheck: -1})
	if err == nil || !strings.Contains(err.Error(), "debounce") || !strings.Contains(err.Error(), "recheck") {
		t.Errorf("NewSource = %v, want both faults", err)
	}
}

func TestSource_Current_isEmptyBeforeTheFirstLoad(t *testing.T) {
	s, err := policy.NewSource("nowhere", policy.SourceConfig{})
	must(t, err)
	if got := s.Current().Domains(); len(got) != 0 {
		t.Errorf("Domains = %v, want none", got)
	}
}

func TestLoad_directory(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", domainFile("mesh", "a", 1))
	write(t, dir, "b.yml", domainFile("mesh", "b", 2))
	write(t, dir, "c.yaml~", "not a policy file")
	write(t, dir, ".d.yaml", "not a policy file")
	write(t, dir, "README.md", "not a policy file")
	must(t, os.Mkdir(filepath.Join(dir, "e.yaml"), 0o755))
	set, err := policy.Load(dir)
	must(t, err)
	if got := len(set.Domain("mesh").Policies()); got != 2 {
		t.Errorf("mesh has %d policies, want 2", got)
	}
	if got, want := set.Domain("mesh").Policies()[1].File, filepath.Join(dir, "b.yml"); got != want {
		t.Errorf("File = %q, want %q", got, want)
	}
}

func TestLoad_severalPaths(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	write(t, dir, "a.yaml", domainFile("mesh", "a", 1))
	write(t, other, "b.yaml", domainFile("mesh", "b", 2))
	set, err := policy.Load(dir, filepath.Join(other, "b.yaml"))
	must(t, err)
	if got := len(set.Domain("mesh").Policies()); got != 2 {
		t.Errorf("mesh has %d policies, want 2", got)
	}
}

func TestLoad_faults(t *testing.T) {
	for _, tt := range []struct {
		name  string
		setup func(t *testing.T, dir string)
		want  string
	}{
		{
			"an empty directory", func(*testing.T, string) {},
			"DIR: the directory holds no policy file, want at least one *.yaml or *.yml",
		},
		{
			"a link to nowhere",
			func(t *testing.T, dir string) { must(t, os.Symlink("nowhere", filepath.Join(dir, "a.yaml"))) },
			"DIR/a.yaml: cannot be read: no such file or directory",
		},
		{
			"no regular file",
			func(t *testing.T, dir string) { must(t, os.Symlink("/dev/null", filepath.Join(dir, "a.yaml"))) },
			"DIR/a.yaml: cannot be read: not a regular file",
		},
		{
			"a duplicate id in another file",
			func(t *testing.T, dir string) {
				write(t, dir, "a.yaml", domainFile("mesh", "a", 1))
				write(t, dir, "b.yaml", strings.Replace(domainFile("mesh", "a", 1), "key: e", "key: f", 1))
			},
			`DIR/b.yaml:3:18: duplicate endpoint_id "a" in this domain: it is also at DIR/a.yaml:3, rename one`,
		},
		{
			"faults of several files",
			func(t *testing.T, dir string) {
				write(t, dir, "a.yaml", domainFile("mesh", "a", 0))
				write(t, dir, "b.yaml", "")
				write(t, dir, "c.yaml", domainFile("other", "c", -1))
			},
			`DIR/a.yaml:5:26: rate is "0/s": rate must be > 0
DIR/b.yaml: the file is empty, want a domain and its policies
DIR/c.yaml:5:26: rate is "-1/s": want a number of tokens per time, like 10/s, 0.5/s, 3/min, 1/day or 100/10s`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			tt.setup(t, dir)
			_, err := policy.Load(dir)
			if err == nil {
				t.Fatal("Load found no fault")
			}
			if diff := cmp.Diff(tt.want, strings.ReplaceAll(err.Error(), dir, "DIR")); diff != "" {
				t.Errorf("Load (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSource_Load_installsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "good.yaml", domainFile("good", "a", 1))
	write(t, dir, "bad.yaml", domainFile("bad", "a", 0))
	s, err := policy.NewSource(dir, policy.SourceConfig{})
	must(t, err)
	if err := s.Load(); err == nil {
		t.Fatal("Load found no fault")
	}
	wantRates(t, s, map[string]int64{})
	if st := s.Status(); !strings.Contains(st.LastError, "bad.yaml:5") || len(st.Domains) != 2 {
		t.Errorf("Status = %+v, want the fault and both domains", st)
	}
}

func TestSource_Reload_aFaultyDomainKeepsItsLastGoodVersion(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", domainFile("mesh", "a", 1))
	write(t, dir, "b.yaml", domainFile("mesh", "b", 1))
	write(t, dir, "other.yaml", domainFile("other", "x", 1))
	s := loaded(t, dir, policy.SourceConfig{})
	version := s.Current().Domain("mesh").Version()

	write(t, dir, "a.yaml", domainFile("mesh", "a", 2))
	write(t, dir, "b.yaml", domainFile("mesh", "b", 0))
	write(t, dir, "other.yaml", domainFile("other", "x", 3))
	write(t, dir, "new.yaml", domainFile("new", "x", 0))
	r := s.Reload()
	wantOutcomes(t, r, map[string]string{"mesh": "kept", "other": "installed", "new": "rejected"})
	wantRates(t, s, map[string]int64{"mesh/a": 1, "mesh/b": 1, "other/x": 3})
	if !r.Changed() || len(r.Faults) != 2 || r.Err() == nil {
		t.Errorf("Report = %+v, want a change and two faults", r)
	}
	status := map[string]policy.DomainStatus{}
	for _, d := range s.Status().Domains {
		status[d.Name] = d
	}
	if d := status["mesh"]; d.Version != version || d.Policies != 2 || !strings.Contains(d.LastError, "b.yaml:5:26") {
		t.Errorf("status of mesh = %+v, want the old version and the fault", d)
	}
	if d := status["other"]; d.LastError != "" || d.Loads[policy.Installed] != 2 {
		t.Errorf("status of other = %+v, want no error and two installs", d)
	}
	if d := status["new"]; d.Version != "" || !d.LoadedAt.IsZero() || !strings.Contains(d.LastError, "new.yaml:5:26") {
		t.Errorf("status of new = %+v, want the fault alone", d)
	}

	write(t, dir, "b.yaml", domainFile("mesh", "b", 2))
	write(t, dir, "new.yaml", domainFile("new", "x", 5))
	r = s.Reload()
	wantOutcomes(t, r, map[string]string{"mesh": "installed", "other": "unchanged", "new": "installed"})
	wantRates(t, s, map[string]int64{"mesh/a": 2, "mesh/b": 2, "other/x": 3, "new/x": 5})
	if st := s.Status(); st.LastError != "" || r.Err() != nil {
		t.Errorf("LastError = %q after it was repaired", st.LastError)
	}
}

// What a file says cannot be told, so nothing that may be in it is lost.
func TestSource_Reload_anUnreadableFile(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, dir string)
		want   map[string]string
		rates  map[string]int64
	}{
		{
			"keeps every domain that came from it",
			func(t *testing.T, dir string) { write(t, dir, "two.yaml", "domain: [\n") },
			map[string]string{"mesh": "kept", "edge": "kept", "other": "unchanged"},
			map[string]int64{"mesh/a": 1, "mesh/b": 1, "edge/x": 1, "other/x": 1},
		},
		{
			"and their parts in other files",
			func(t *testing.T, dir string) {
				write(t, dir, "two.yaml", "")
				write(t, dir, "mesh.yaml", domainFile("mesh", "a", 9))
				write(t, dir, "other.yaml", domainFile("other", "x", 9))
			},
			map[string]string{"mesh": "kept", "edge": "kept", "other": "installed"},
			map[string]int64{"mesh/a": 1, "mesh/b": 1, "edge/x": 1, "other/x": 9},
		},
		{
			"even if all of their policies are elsewhere now",
			func(t *testing.T, dir string) {
				write(t, dir, "two.yaml", "domain: [\n")
				write(t, dir, "moved.yaml", domainFile("edge", "x", 9))
			},
			map[string]string{"mesh": "kept", "edge": "kept", "other": "unchanged"},
			map[string]int64{"mesh/a": 1, "mesh/b": 1, "edge/x": 1, "other/x": 1},
		},
		{
			"under a new name keeps what disappeared meanwhile",
			func(t *testing.T, dir string) {
				must(t, os.Remove(filepath.Join(dir, "other.yaml")))
				write(t, dir, "renamed.yaml", "domain: [\n")
			},
			map[string]string{"mesh": "unchanged", "edge": "unchanged", "other": "kept"},
			map[string]int64{"mesh/a": 1, "mesh/b": 1, "edge/x": 1, "other/x": 1},
		},
		{
			"under a new name keeps a domain from losing an endpoint",
			func(t *testing.T, dir string) {
				write(t, dir, "mesh.yaml", domainFile("mesh", "c", 9))
				write(t, dir, "new.yaml", "domain: [\n")
			},
			map[string]string{"mesh": "kept", "edge": "unchanged", "other": "unchanged"},
			map[string]int64{"mesh/a": 1, "mesh/b": 1, "edge/x": 1, "other/x": 1},
		},
		{
			"that is a link to nowhere keeps its domains",
			func(t *testing.T, dir string) {
				must(t, os.Remove(filepath.Join(dir, "two.yaml")))
				must(t, os.Symlink("nowhere", filepath.Join(dir, "two.yaml")))
			},
			map[string]string{"mesh": "kept", "edge": "kept", "other": "unchanged"},
			map[string]int64{"mesh/a": 1, "mesh/b": 1, "edge/x": 1, "other/x": 1},
		},
		{
			"whose other document has lost its domain keeps its domains",
			func(t *testing.T, dir string) {
				write(t, dir, "two.yaml", domainFile("mesh", "b", 9)+"---\n"+domainFile("''", "x", 9))
			},
			map[string]string{"mesh": "kept", "edge": "kept", "other": "unchanged"},
			map[string]int64{"mesh/a": 1, "mesh/b": 1, "edge/x": 1, "other/x": 1},
		},
		{
			"is not one that is gone",
			func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "two.yaml"))) },
			map[string]string{"mesh": "installed", "edge": "removed", "other": "unchanged"},
			map[string]int64{"mesh/a": 1, "other/x": 1},
		},
		{
			"is an empty directory",
			func(t *testing.T, dir string) {
				for _, name := range []string{"two.yaml", "mesh.yaml", "other.yaml"} {
					must(t, os.Remove(filepath.Join(dir, name)))
				}
			},
			map[string]string{"mesh": "kept", "edge": "kept", "other": "kept"},
			map[string]int64{"mesh/a": 1, "mesh/b": 1, "edge/x": 1, "other/x": 1},
		},
		{
			"is a directory that is gone",
			func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) },
			map[string]string{"mesh": "kept", "edge": "kept", "other": "kept"},
			map[string]int64{"mesh/a": 1, "mesh/b": 1, "edge/x": 1, "other/x": 1},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "policies")
			must(t, os.Mkdir(dir, 0o755))
			write(t, dir, "two.yaml", domainFile("mesh", "b", 1)+"---\n"+domainFile("edge", "x", 1))
			write(t, dir, "mesh.yaml", domainFile("mesh", "a", 1))
			write(t, dir, "other.yaml", domainFile("other", "x", 1))
			s := loaded(t, dir, policy.SourceConfig{})
			tt.change(t, dir)
			r := s.Reload()
			wantOutcomes(t, r, tt.want)
			wantRates(t, s, tt.rates)
			if len(s.Status().Domains) != len(s.Current().Domains()) {
				t.Errorf("Status has %d domains, %d are in force", len(s.Status().Domains), len(s.Current().Domains()))
			}
			for _, d := range r.Domains {
				if (d.Outcome == policy.Kept) != (len(d.Faults) > 0) {
					t.Errorf("%s is %v with %d faults", d.Name, d.Outcome, len(d.Faults))
				}
			}
		})
	}
}

func TestSource_Reload_sameContentIsUnchanged(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", domainFile("mesh", "a", 1))
	s := loaded(t, dir, policy.SourceConfig{})
	since, version := s.Current().Domain("mesh").LoadedAt(), s.Current().Version()
	write(t, dir, "a.yaml", "# moved down\n"+domainFile("mesh", "a", 1))
	r := s.Reload()
	wantOutcomes(t, r, map[string]string{"mesh": "unchanged"})
	if r.Changed() || r.Version != version {
		t.Errorf("Report = %+v, want no change of version %s", r, version)
	}
	d := s.Current().Domain("mesh")
	if !d.LoadedAt().Equal(since) {
		t.Errorf("LoadedAt = %v, want %v", d.LoadedAt(), since)
	}
	if got := d.Policies()[0].Line; got != 4 {
		t.Errorf("Line = %d, want 4, where the policy is now", got)
	}
	if st := s.Status(); !st.ChangedAt.Equal(since) || !st.CheckedAt.After(since) {
		t.Errorf("Status = %+v, want changed at %v and checked later", st, since)
	}
}

func TestSource_Reload_aRemovedDomainIsAChange(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", domainFile("mesh", "a", 1))
	write(t, dir, "b.yaml", domainFile("edge", "b", 1))
	s := loaded(t, dir, policy.SourceConfig{})
	must(t, os.Remove(filepath.Join(dir, "b.yaml")))
	r := s.Reload()
	wantOutcomes(t, r, map[string]string{"mesh": "unchanged", "edge": "removed"})
	if !r.Changed() || r.Version != s.Current().Version() {
		t.Errorf("Report = %+v, want a change to version %s", r, s.Current().Version())
	}
}

func TestSource_Status_isASnapshot(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", domainFile("mesh", "a", 1))
	s := loaded(t, dir, policy.SourceConfig{})
	before := s.Status()
	s.Reload()
	want := map[policy.Outcome]uint64{policy.Installed: 1}
	if diff := cmp.Diff(want, before.Domains[0].Loads); diff != "" {
		t.Errorf("Loads (-want +got):\n%s", diff)
	}
	want[policy.Unchanged]++
	if diff := cmp.Diff(want, s.Status().Domains[0].Loads); diff != "" {
		t.Errorf("Loads after another (-want +got):\n%s", diff)
	}
}

func TestSource_Reload_reportsAfterTheSetIsInForce(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", domainFile("mesh", "a", 1))
	var s *policy.Source
	var reported []string
	s = loaded(t, dir, policy.SourceConfig{OnReload: func(r policy.Report) {
		if got := s.Current().Version(); got != r.Version {
			t.Errorf("version %s in force during the report of %s", got, r.Version)
		}
		reported = append(reported, r.Version)
	}})
	write(t, dir, "a.yaml", domainFile("mesh", "a", 2))
	if r := s.Reload(); len(reported) != 1 || reported[0] != r.Version {
		t.Errorf("reported %v, want %s once", reported, r.Version)
	}
}

// Requests go on while policies are replaced, and never see a domain half done.
func TestSource_Current_whileReloading(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", domainFile("mesh", "a", 1))
	s := loaded(t, dir, policy.SourceConfig{})
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			asked := descriptor("e", "a")
			for {
				select {
				case <-stop:
					return
				default:
					if s.Current().Domain("mesh").Match(asked).BucketKey(asked) == "" {
						t.Error("no key")
					}
					s.Status()
				}
			}
		})
	}
	for i := range 50 {
		write(t, dir, "a.yaml", domainFile("mesh", "a", 1+i))
		s.Reload()
	}
	close(stop)
	readers.Wait()
	wantRates(t, s, map[string]int64{"mesh/a": 50})
}

// watching runs Watch until the test ends, and returns the reports.
func watching(t *testing.T, path string, cfg policy.SourceConfig) (*policy.Source, <-chan policy.Report) {
	t.Helper()
	reports := make(chan policy.Report, 10_000)
	cfg.OnReload = func(r policy.Report) { reports <- r }
	s := loaded(t, path, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Watch(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return s, reports
}

// Either notifications or rechecks alone must do.
var (
	notified  = policy.SourceConfig{Debounce: 10 * time.Millisecond, Recheck: time.Hour}
	rechecked = policy.SourceConfig{Debounce: time.Hour, Recheck: 5 * time.Millisecond}
)

// awaitRate waits until the policy mesh/a has the rate.
func awaitRate(t *testing.T, s *policy.Source, reports <-chan policy.Report, want int64) {
	t.Helper()
	await(t, reports, func() bool { return rates(s)["mesh/a"] == want })
}

// await waits for reports until the condition holds.
func await(t *testing.T, reports <-chan policy.Report, holds func() bool) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-reports:
		case <-timeout:
			t.Fatal("not so after 20 s")
		}
	}
}

func TestSource_Watch_seesAFileWritten(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", domainFile("mesh", "a", 1))
	s, reports := watching(t, dir, notified)
	for rate := range 5 {
		write(t, dir, "a.yaml", domainFile("mesh", "a", 10+rate))
		awaitRate(t, s, reports, int64(10+rate))
	}
	write(t, dir, "b.yaml", domainFile("edge", "b", 1))
	write(t, dir, "a.yaml", domainFile("mesh", "a", 20))
	awaitRate(t, s, reports, 20)
	if s.Current().Domain("edge") == nil {
		t.Error("the new file was not loaded")
	}
	if st := s.Status(); st.WatchError != "" {
		t.Errorf("WatchError = %q", st.WatchError)
	}
}

func TestSource_Watch_seesAFileRenamedOver(t *testing.T) {
	for _, tt := range []struct{ name, path string }{{"of a directory", "."}, {"a single file", "a.yaml"}} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "a.yaml", domainFile("mesh", "a", 1))
			s, reports := watching(t, filepath.Join(dir, tt.path), notified)
			for rate := range 3 {
				write(t, dir, ".a.yaml.swp", domainFile("mesh", "a", 10+rate))
				must(t, os.Rename(filepath.Join(dir, ".a.yaml.swp"), filepath.Join(dir, "a.yaml")))
				awaitRate(t, s, reports, int64(10+rate))
			}
		})
	}
}

// swapConfigMap does what the kubelet does: the files of a volume are links through "..data", which is replaced. The
// old files stay, so that nothing but the link can be noticed.
func swapConfigMap(t *testing.T, dir, generation string, files map[string]string) {
	t.Helper()
	must(t, os.Mkdir(filepath.Join(dir, generation), 0o755))
	for name, content := range files {
		write(t, filepath.Join(dir, generation), name, content)
	}
	must(t, os.Symlink(generation, filepath.Join(dir, "..data_tmp")))
	must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
}

// linkConfigMap makes a file of the volume.
func linkConfigMap(t *testing.T, dir, name string) {
	t.Helper()
	must(t, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
}

func TestSource_Watch_seesAConfigMapSwapped(t *testing.T) {
	for _, tt := range []struct{ name, path string }{{"a directory", "."}, {"a single file of it", "a.yaml"}} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			swapConfigMap(t, dir, "..2026_1", map[string]string{"a.yaml": domainFile("mesh", "a", 1)})
			linkConfigMap(t, dir, "a.yaml")
			s, reports := watching(t, filepath.Join(dir, tt.path), notified)
			swapConfigMap(t, dir, "..2026_2", map[string]string{"a.yaml": domainFile("mesh", "a", 2)})
			awaitRate(t, s, reports, 2)
			swapConfigMap(t, dir, "..2026_3", map[string]string{"a.yaml": "domain: [\n"})
			await(t, reports, func() bool { return s.Status().LastError != "" })
			wantRates(t, s, map[string]int64{"mesh/a": 2})
			swapConfigMap(t, dir, "..2026_4", map[string]string{"a.yaml": domainFile("mesh", "a", 4)})
			awaitRate(t, s, reports, 4)
		})
	}
}

// A directory that is replaced is another one to the system: the old watch would see nothing any more.
func TestSource_Watch_followsAReplacedDirectory(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     policy.SourceConfig
		replace func(t *testing.T, path, next string)
	}{
		{"a link to another", rechecked, func(t *testing.T, path, next string) {
			must(t, os.RemoveAll(path))
			must(t, os.Symlink(next, path))
		}},
		{"removed and moved in", notified, func(t *testing.T, path, next string) {
			must(t, os.RemoveAll(path))
			must(t, os.Rename(next, path))
		}},
		{"moved away and moved in", rechecked, func(t *testing.T, path, next string) {
			must(t, os.Rename(path, path+".old"))
			must(t, os.Rename(next, path))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			path, next := filepath.Join(root, "current"), filepath.Join(root, "next")
			for i, dir := range []string{path, next} {
				must(t, os.Mkdir(dir, 0o755))
				write(t, dir, "a.yaml", domainFile("mesh", "a", 1+i))
			}
			s, reports := watching(t, path, tt.cfg)
			tt.replace(t, path, next)
			awaitRate(t, s, reports, 2)
			write(t, path, "a.yaml", domainFile("mesh", "a", 3))
			awaitRate(t, s, reports, 3)
		})
	}
}

// What the system refused to read once it may let be read later, without any change to be noticed.
func TestSource_Watch_triesAnUnreadableFileAgain(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", domainFile("mesh", "a", 1))
	_, reports := watching(t, dir, rechecked)
	must(t, os.Remove(filepath.Join(dir, "a.yaml")))
	must(t, os.Symlink("/dev/null", filepath.Join(dir, "a.yaml")))
	loads := 0
	await(t, reports, func() bool { loads++; return loads > 5 })
}

// Changes that never pause do not keep a load off. The first report may be that of the start of the watch.
func TestSource_Watch_loadsDuringEndlessChanges(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", domainFile("mesh", "a", 1))
	_, reports := watching(t, dir, policy.SourceConfig{Debounce: 60 * time.Millisecond, Recheck: time.Hour})
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(20 * time.Second)
	for i := 0; len(reports) < 2; i++ {
		select {
		case <-timeout:
			t.Fatal("no load in 20 s of changes")
		case <-tick.C:
			write(t, dir, "a.yaml", domainFile("mesh", "a", 1+i%1000))
		}
	}
}

// A burst of changes is one load, besides that of the start of the watch.
func TestSource_Watch_loadsABurstOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", domainFile("mesh", "a", 1))
	s, reports := watching(t, dir, policy.SourceConfig{Debounce: 500 * time.Millisecond, Recheck: time.Hour})
	for i := range 100 {
		write(t, dir, "a.yaml", domainFile("mesh", "a", 2+i))
	}
	awaitRate(t, s, reports, 101)
	if st := s.Status().Domains[0]; st.Loads[policy.Installed] > 4 {
		t.Errorf("100 changes were loaded %d times", st.Loads[policy.Installed])
	}
}

// Two policies change places between two files, in one swap of a ConfigMap. A load in the middle of it would find one
// of them twice and the other not at all.
func TestLoad_readsAllFilesOfOneMoment(t *testing.T) {
	dir := t.TempDir()
	linkConfigMap(t, dir, "a.yaml")
	linkConfigMap(t, dir, "b.yaml")
	swap := func(i int) {
		swapConfigMap(t, dir, fmt.Sprintf("..%d", i), map[string]string{
			"a.yaml": domainFile("mesh", string("xy"[i%2]), 1),
			"b.yaml": domainFile("mesh", string("yx"[i%2]), 1),
		})
	}
	swap(0)
	stop := make(chan struct{})
	var loader sync.WaitGroup
	loader.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				loadTwo(t, dir)
			}
		}
	})
	for i := range 200 {
		swap(1 + i)
	}
	close(stop)
	loader.Wait()
}

func loadTwo(t *testing.T, dir string) {
	set, err := policy.Load(dir)
	switch {
	case err != nil && !strings.Contains(err.Error(), "keep changing"):
		t.Errorf("Load = %v", err)
	case err == nil && len(set.Domain("mesh").Policies()) != 2:
		t.Errorf("Load found %d policies, want 2", len(set.Domain("mesh").Policies()))
	}
}
