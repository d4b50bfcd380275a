package policy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Fault is one mistake in a policy file, or a file that could not be read.
type Fault struct {
	File string
	// Line and Column count from 1; they are 0 when the fault is in the whole file.
	Line, Column int
	// Text says what is wrong and what would be right.
	Text string
	// Err is what the system said when the fault is not in the content, else nil.
	Err error
}

// Error returns the fault in the form file:line:column: text.
func (f Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	for _, n := range [...]int{f.Line, f.Column} {
		if n > 0 {
			b.WriteString(":" + strconv.Itoa(n))
		}
	}
	return b.String() + ": " + f.Text
}

// Unwrap returns Err.
func (f Fault) Unwrap() error { return f.Err }

// Faults are the mistakes of one load, in the order of their positions.
type Faults []Fault

// Error returns one fault a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults one by one.
func (f Faults) Unwrap() []error {
	errs := make([]error, len(f))
	for i, fault := range f {
		errs[i] = fault
	}
	return errs
}

// err returns f as an error, and nil for none.
func (f Faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// sorted returns the faults in the order of their positions.
func (f Faults) sorted() Faults {
	sorted := slices.Clone(f)
	slices.SortStableFunc(sorted, func(a, b Fault) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
		)
	})
	return sorted
}
