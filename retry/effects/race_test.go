//go:build race

package effects_test

// everyNth row of the long table of gaps is tested: what they show is shown without the race
// detector, which looks at what happens between the goroutines of any of them.
const everyNth = 7
