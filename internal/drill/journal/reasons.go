package journal

import (
	"slices"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// Reasons are those that an answer may carry, in the order of the table.
func Reasons() []string {
	list := make([]string, 0, len(failure.Reasons)+1)
	for _, r := range failure.Reasons {
		list = append(list, r.String())
	}
	return append(list, DeniedWithoutReason)
}

// rank is the place of a reason in the table; whatever is outside comes last.
func rank(reason string) int {
	list := Reasons()
	if i := slices.Index(list, reason); i >= 0 {
		return i
	}
	return len(list)
}
