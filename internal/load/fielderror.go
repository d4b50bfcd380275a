package load

import "fmt"

// FieldError is a field of Config that cannot be used.
type FieldError struct {
	// Field is the name in Config, a field of a field as in "Fault.At".
	Field string
	// Problem says what is wrong and what would be right.
	Problem string
}

// Error names the field and the problem.
func (e *FieldError) Error() string { return fmt.Sprintf("load: %s: %s", e.Field, e.Problem) }
