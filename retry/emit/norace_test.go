//go:build !race

package emit_test

// slower: nothing slows the tests down.
const slower = 1
