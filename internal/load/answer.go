package load

import "cmp"

// Answer is a kind of answer and how often it came.
type Answer struct {
	// Answer is OK, OVER_LIMIT, error, or unanswered for a request that was given up at the end of the run.
	Answer string `json:"answer"`
	// Reason is the decision that the answer's dynamic metadata name; without one the overall code, or of an error
	// the gRPC code.
	Reason string `json:"reason"`
	// Requests is how many were answered so.
	Requests int64 `json:"requests"`
}

// compareAnswers puts the most frequent first.
func compareAnswers(a, b Answer) int {
	return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Answer, b.Answer), cmp.Compare(a.Reason, b.Reason))
}
