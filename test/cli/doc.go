// Package cli runs scripts over the real binaries: everything that a user of the
// command lines meets, on a real embedded engine. It has tests only.
package cli
