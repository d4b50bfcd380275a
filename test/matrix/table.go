package main

import "strings"

// table is a Markdown table.
type table struct{ strings.Builder }

func newTable(columns ...string) *table {
	t := &table{}
	t.row(columns...)
	t.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
	return t
}

// row adds a row; a cell's own | would end it.
func (t *table) row(cells ...string) {
	for _, c := range cells {
		t.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
	}
	t.WriteString("|\n")
}
