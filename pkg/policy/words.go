package policy

import (
	"fmt"
	"strings"
)

// maxListed bounds the words that a message offers to choose from.
const maxListed = 20

// clip shortens what a file says to what a message can show.
func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

func quote(s string) string { return fmt.Sprintf("%q", clip(s)) }

// suggest ends the sentence about a word that is none of the known ones.
func suggest(word string, known []string) string {
	best, least := "", len(word)/3+1
	for _, k := range known {
		if len(word) > 2 && strings.Contains(k, word) {
			return fmt.Sprintf("did you mean %q?", k)
		}
		if d := distance(word, k); d <= least && (best == "" || d < least) {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(known) > maxListed {
		return fmt.Sprintf("want one of %s or %d more", strings.Join(known[:maxListed], ", "), len(known)-maxListed)
	}
	return "want one of " + strings.Join(known, ", ")
}

// distance is the number of bytes to insert, delete or replace that makes a into b (Levenshtein). A word much longer
// than any field is no misspelling, and not worth the time.
func distance(a, b string) int {
	if len(a) > 2*len(b)+8 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
