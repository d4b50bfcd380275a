package policy

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// glob is a text with stars, each of which stands for any run of bytes, the empty one and slashes included.
type glob struct {
	// prefix and suffix are the literal texts before the first and after the last star, middle those in between.
	prefix, suffix string
	middle         []string
}

// rank orders globs: the most specific one comes first.
type rank struct{ prefix, literals, stars, suffix int }

func (g glob) rank() rank {
	r := rank{prefix: len(g.prefix), stars: 1 + len(g.middle), suffix: len(g.suffix)}
	r.literals = r.prefix + r.suffix
	for _, part := range g.middle {
		r.literals += len(part)
	}
	return r
}

// compare is negative if r is the more specific: the longer literal prefix, then more literal bytes, then fewer
// stars, then the longer literal suffix.
func (r rank) compare(o rank) int {
	return cmp.Or(
		cmp.Compare(o.prefix, r.prefix),
		cmp.Compare(o.literals, r.literals),
		cmp.Compare(r.stars, o.stars),
		cmp.Compare(o.suffix, r.suffix),
	)
}

// matches tells whether s is of the form g.
func (g glob) matches(s string) bool {
	return len(s) >= len(g.prefix)+len(g.suffix) && strings.HasPrefix(s, g.prefix) &&
		strings.HasSuffix(s, g.suffix) && g.matchesMiddle(s[len(g.prefix):len(s)-len(g.suffix)])
}

// matchesMiddle looks for the parts between the stars in what is left of a value without prefix and suffix. Taking
// each at its first occurrence is enough, because every part is followed by a star.
func (g glob) matchesMiddle(s string) bool {
	for _, part := range g.middle {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}

// String writes g so that parseValue reads it back.
func (g glob) String() string {
	parts := make([]string, 0, len(g.middle)+2)
	for _, part := range append(append([]string{g.prefix}, g.middle...), g.suffix) {
		parts = append(parts, escape(part))
	}
	return strings.Join(parts, "*")
}

var errEscape = errors.New(`a backslash must be followed by * or another backslash`)

// split cuts a value at its stars and resolves its escapes. Stars in a row are one star.
func split(value string) ([]string, error) {
	parts := []string{""}
	var part strings.Builder
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case '*':
			if parts[len(parts)-1] = part.String(); len(parts) == 1 || part.Len() > 0 {
				parts = append(parts, "")
			}
			part.Reset()
		case '\\':
			if i++; i == len(value) || value[i] != '*' && value[i] != '\\' {
				return nil, fmt.Errorf("%w; write \\\\ for a literal backslash", errEscape)
			}
			part.WriteByte(value[i])
		default:
			part.WriteByte(c)
		}
	}
	parts[len(parts)-1] = part.String()
	return parts, nil
}

func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`).Replace(s)
}
