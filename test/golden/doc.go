// Package golden imports the golden attempts into the real engine in every way
// that must not matter and compares the reports with the golden ones. It holds
// tests only; `make verify-golden` prints their result as one JSON line.
package golden
