package load

// KeyPlaceholder in the value of an Entry stands for the number of the key that is drawn for each request.
const KeyPlaceholder = "{key}"

// Entry is one entry of a request's descriptor.
type Entry struct {
	// Key is sent as it is.
	Key string
	// Value is sent with every KeyPlaceholder replaced by the drawn key, from 0 to Config.Keys-1.
	Value string
}
