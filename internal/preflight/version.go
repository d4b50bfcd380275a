package preflight

import (
	"cmp"
	"fmt"
	"strings"
)

// version is that of a server.
type version struct{ major, minor, patch int }

// parseVersion reads 7.0.15; ok is false if it is no version.
func parseVersion(s string) (v version, ok bool) {
	n, _ := fmt.Sscanf(strings.TrimSpace(s), "%d.%d.%d", &v.major, &v.minor, &v.patch)
	return v, n >= 2
}

func (v version) before(w version) bool {
	return cmp.Or(cmp.Compare(v.major, w.major), cmp.Compare(v.minor, w.minor), cmp.Compare(v.patch, w.patch)) < 0
}

// String leaves out a patch of 0, as people do.
func (v version) String() string {
	if v.patch == 0 {
		return fmt.Sprintf("%d.%d", v.major, v.minor)
	}
	return fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch)
}
