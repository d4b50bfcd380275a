package journal

// Check is one thing that had to hold, and whether it did.
type Check struct {
	// Name says what is checked.
	Name string `json:"name"`
	// Want and Got are for a reader.
	Want string `json:"want"`
	Got  string `json:"got"`
	// Passed is the verdict.
	Passed bool `json:"passed"`
}
