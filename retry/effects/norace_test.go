//go:build !race

package effects_test

// everyNth row of the long table of gaps is tested: all.
const everyNth = 1
