// Package replay says of history what a detector would have said while it happened.
//
// A store holds final records only. What was known at a moment t is taken to be the
// records that had ended by then, started_at + duration_ms ≤ t: they are sent at their
// end. So an operation whose second try is still under way at t is open at t, however it
// ended later. A record that comes [Options.Hold] or more after its time in the input is
// known from when it comes.
//
// [Window] folds records into samples, incrementally and exactly as internal/metrics
// defines the figures (quantiles by its sketch); it knows no file and no store.
package replay
