package retrylens

// Opt is a value that may be "not reported". The zero Opt is not reported; it
// is never to be read as the zero value of T.
type Opt[T any] struct {
	Value T
	Set   bool
}

// Some returns a reported value.
func Some[T any](v T) Opt[T] { return Opt[T]{Value: v, Set: true} }

// Or returns the value, or def when it was not reported.
func (o Opt[T]) Or(def T) T {
	if o.Set {
		return o.Value
	}
	return def
}
