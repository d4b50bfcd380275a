// Package sheet holds what the programs that measure write their pages with: Markdown tables, and what machine the
// figures are from. It knows none of the figures.
package sheet

import "strings"

// Table is a Markdown table. Not safe for concurrent use.
type Table struct{ strings.Builder }

// NewTable returns a table without rows.
func NewTable(columns ...string) *Table {
	t := &Table{}
	t.Row(columns...)
	t.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
	return t
}

// Row adds a row; a cell's own | would end it.
func (t *Table) Row(cells ...string) {
	for _, c := range cells {
		t.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
	}
	t.WriteString("|\n")
}
