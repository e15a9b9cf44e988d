// Package sim names the worlds worth simulating: scenarios, each with a fleet, what
// goes wrong and when, and the ground truth beside it, so that what a report or a
// detector says can be held to what really happened. They are played by package
// world; [Run] gives their attempt records, the same ones for the same options.
//
// A scenario says what breaks, never what a figure will be.
//
// Latencies are drawn with package math, whose last digit may differ between
// processor architectures: bytes are promised on one architecture.
package sim
