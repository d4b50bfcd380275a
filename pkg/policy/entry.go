package policy

// Entry is one entry of a request's descriptor, as the client sent it.
type Entry struct{ Key, Value string }
