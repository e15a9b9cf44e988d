//go:build race

package emit_test

// slower is how much more time the race detector's instrumentation may take.
const slower = 20
