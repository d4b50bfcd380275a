package policy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watch reloads whenever the files change, until ctx is done. It watches the directory rather than the files, so that
// the swap of a ConfigMap's symbolic link and an editor that renames a new file over the old one are seen. Where
// notifications cannot be had, or miss something, it rechecks at intervals: see SourceConfig.Recheck and
// Status.WatchError.
func (s *Source) Watch(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Recheck)
	defer tick.Stop()
	for ctx.Err() == nil {
		s.watchOnce(ctx, tick.C)
	}
}

// watchOnce waits for one change and loads it. A new watch for each finds the directory where it is now: one that was
// replaced, or reached through a link that was, is another directory to the system.
func (s *Source) watchOnce(ctx context.Context, tick <-chan time.Time) {
	notifier, dir, err := s.watcher()
	s.noteWatch(err)
	s.recheck() // what changed while there was no watch
	if err != nil {
		select {
		case <-ctx.Done():
		case <-tick:
		}
		return
	}
	defer notifier.Close()
	c := changes{source: s, dir: dir, quiet: time.NewTimer(never)}
	defer c.quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-notifier.Events:
			c.note(e)
		case <-c.quiet.C:
			s.Reload()
			return
		case <-tick:
			return
		case _ = <-notifier.Errors: //nolint:staticcheck // events were lost, whatever the reason
			return
		}
	}
}

// never is longer than any process lives.
const never = 1 << 62 * time.Nanosecond

var errMoving = errors.New("policy: watch: the directory keeps being replaced")

// watcher watches the directory. It tries again if the directory is replaced at this very moment.
func (s *Source) watcher() (notifier *fsnotify.Watcher, dir string, err error) {
	for range attempts {
		dir = s.directory()
		if notifier, err = watchDirectory(dir); err != nil {
			continue
		}
		if dir == s.directory() {
			return notifier, dir, nil
		}
		notifier.Close()
		err = errMoving
	}
	return nil, dir, err
}

func watchDirectory(dir string) (*fsnotify.Watcher, error) {
	notifier, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("policy: watch: %w", err)
	}
	if err := notifier.Add(dir); err != nil {
		notifier.Close()
		return nil, fmt.Errorf("policy: watch %s: %w", dir, err)
	}
	return notifier, nil
}

// directory is what must be watched to see the files change.
func (s *Source) directory() string {
	if info, err := os.Stat(s.path); err == nil && info.IsDir() {
		return s.path
	}
	return filepath.Dir(s.path)
}

// recheck reloads if the files look different from what was last read.
func (s *Source) recheck() {
	s.turn.Lock()
	last := s.seen
	s.turn.Unlock()
	if now, _ := look(s.path); !now.equal(last) {
		s.Reload()
	}
}

// changes waits for changes to settle.
type changes struct {
	source *Source
	dir    string
	quiet  *time.Timer
	first  time.Time // when the oldest change not yet loaded was seen
}

// note puts the load off until changes have been quiet for a while, but not for ever.
func (c *changes) note(e fsnotify.Event) {
	if !c.concerns(e.Name) {
		return
	}
	now := time.Now()
	if c.first.IsZero() {
		c.first = now
	}
	debounce := c.source.cfg.Debounce
	latest := c.first.Add(10 * debounce)
	c.quiet.Reset(max(0, min(debounce, latest.Sub(now))))
}

// concerns tells whether a change to name can change the policies: a policy file, the link "..data" of a ConfigMap,
// or the directory itself.
func (c *changes) concerns(name string) bool {
	base := filepath.Base(name)
	return hasPolicyName(base) || strings.HasPrefix(base, "..") || base == filepath.Base(c.source.path) || name == c.dir
}
