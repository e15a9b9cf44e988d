// Package format writes single values for people: money, tokens, times, shares, sizes,
// figures, and foreign text made harmless. It is the one way in which the command line
// and the UI write them, so both say the same. Layout is not here, nor is any format for
// programs (package export). It belongs to all and knows no adapter.
package format
