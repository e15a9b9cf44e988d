// Package effects keeps side effects from happening twice, on a database that the caller
// has already: PostgreSQL or SQLite, through database/sql. It imports no driver.
//
// Four tools, from the strongest guarantee to the weakest:
//
//   - [Store.Once]: what a function does in the caller's transaction is done once per key;
//     repeats get the result of the first.
//   - [Store.Enqueue] and [Store.Drain]: a message written in the caller's transaction is
//     dispatched at least once, with its key, by one drainer at a time.
//   - [Store.Do] and [Store.Reconcile]: a call that cannot be undone is written down as
//     pending before it is made and as committed after it; what a timeout or a crash left
//     pending is found out by asking the receiver.
//   - [Store.Run]: an agent's run as steps, each a Do under the key of run and index, which
//     resumes behind the last committed step.
//
// Whether an action may be repeated is known to its author alone, so it is an argument
// without a default: a [Permission].
//
// A suppressed repeat leaves one record with the outcome replayed, if the store was given
// a recorder. docs/effects.md says what each of the four can guarantee and what nobody can.
//
// Not here: making keys (package keys), retries within a call (package retryhttp), drivers.
package effects
