// Package detect tells a masked outage from what only looks like one
// (docs/detector.md, docs/metrics.md "Masked outage").
//
// A [Detector] is fed, every [Interval], with what is known at that moment of the
// operations of the last [Span], for every series and for all; it keeps baselines
// and a state for each. It compares figures of the same age only: a baseline is made
// of what former evaluations saw when they were made, with the newest operations as
// unfinished as they are now.
//
// It is pure: no clock, no store, no transport, no goroutine; times come with the
// samples. What reads history from files or a store is package replay below, what
// asks a store every quarter of a minute is internal/app; rules and delivery of
// alerts live elsewhere.
package detect
