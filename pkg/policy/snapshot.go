package policy

import (
	"io/fs"
	"os"
	"slices"
)

// snapshot is the state of the policy files at one moment, as far as it can be told without reading them.
type snapshot struct {
	names []string
	infos []fs.FileInfo // nil for a file that cannot be looked at
}

// look takes the snapshot of path.
func look(path string) (snapshot, Faults) {
	names, faults := list(path)
	if faults != nil {
		return snapshot{}, faults
	}
	s := snapshot{names: names, infos: make([]fs.FileInfo, len(names))}
	for i, name := range names {
		s.infos[i], _ = os.Stat(name)
	}
	return s, nil
}

// equal tells whether the files are the same and unchanged. A snapshot that failed equals none.
func (s snapshot) equal(o snapshot) bool {
	return s.names != nil && slices.Equal(s.names, o.names) && slices.EqualFunc(s.infos, o.infos, sameFile)
}

func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Mode() == b.Mode() && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
