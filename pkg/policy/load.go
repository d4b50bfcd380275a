package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Load reads the policies of files, and of all *.yaml and *.yml files in directories; what several paths hold belongs
// together, as if it were in one directory. Names that begin with a dot and subdirectories are left out; symbolic
// links are followed, as in a mounted Kubernetes ConfigMap. Any fault anywhere means no Set: the error is of type
// Faults and holds all of them.
func Load(paths ...string) (*Set, error) {
	var files []file
	for _, path := range paths {
		found, _ := gather(path)
		files = append(files, found...)
	}
	return assemble(files, time.Now()).set()
}

// read puts together what path holds.
func read(path string, now time.Time) assembly {
	files, seen := gather(path)
	a := assemble(files, now)
	a.seen = seen
	return a
}

// attempts bounds how often the files are read again because they changed meanwhile.
const attempts = 3

// gather reads all files of path as they were at one moment, so that a policy that is moved from one file to another
// is never missed, nor seen twice. The snapshot is of that moment, and empty if there was none.
func gather(path string) ([]file, snapshot) {
	for range attempts {
		seen, faults := look(path)
		if faults != nil {
			return []file{{blind: faults}}, snapshot{}
		}
		files := make([]file, len(seen.names))
		for i, name := range seen.names {
			files[i] = open(name)
		}
		if again, _ := look(path); again.equal(seen) {
			return files, seen
		}
	}
	fault := Fault{File: path, Text: "the files keep changing while they are read"}
	return []file{{blind: Faults{fault}}}, snapshot{}
}

// list returns the names of the policy files at path, in order.
func list(path string) ([]string, Faults) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, Faults{systemFault(path, err)}
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, Faults{systemFault(path, err)}
	}
	var names []string
	for _, e := range entries {
		if name := filepath.Join(path, e.Name()); isPolicyFile(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, Faults{{File: path, Text: "the directory holds no policy file, want at least one *.yaml or *.yml"}}
	}
	return names, nil
}

// isPolicyFile goes by the name, except that a directory never is one. A link that leads nowhere is one, so that it
// is reported.
func isPolicyFile(name string) bool {
	if !hasPolicyName(filepath.Base(name)) {
		return false
	}
	info, err := os.Stat(name)
	return err != nil || !info.IsDir()
}

func hasPolicyName(base string) bool {
	ext := filepath.Ext(base)
	return !strings.HasPrefix(base, ".") && (ext == ".yaml" || ext == ".yml")
}

// open reads one file.
func open(name string) file {
	content, err := contentOf(name)
	if err != nil {
		return file{blind: Faults{systemFault(name, err)}}
	}
	return readFile(name, content)
}

var errNotRegular = errors.New("not a regular file")

// contentOf reads at most one byte more than a policy file may have. It opens nothing that could block.
func contentOf(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFileSize+1))
}

// systemFault says that name cannot be read.
func systemFault(name string, err error) Fault {
	reason := err
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		reason = p.Err
	}
	return Fault{File: name, Text: fmt.Sprintf("cannot be read: %v", reason), Err: err}
}
