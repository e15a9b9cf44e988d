// Package drain brings a spool into a sink: sealed segments, oldest first with a
// share for the newest, each deleted only when all its records are stored or are
// in the dead-letter file. It never gives up a record: errors that may pass are
// waited for, a record that the store refuses for what it holds is named by it, or found by
// halving and put aside with the reason.
//
// What an error means is told by a function of the caller's; this package knows
// no store.
package drain
