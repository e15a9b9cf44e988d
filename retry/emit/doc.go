// Package emit brings attempt records from the process that made them to where they are
// kept: an ingest service over HTTP, a file, a stream.
//
// An [Emitter] never blocks and never fails the call that it records: [Emitter.Emit] puts
// a record into bounded memory and returns; a goroutine encodes, batches, compresses and
// sends it, tries again with backoff, or puts batches that cannot be sent on disk. What does not
// fit is dropped and counted, and its running number (seq) is used up, so that a loss
// shows as a gap wherever the records are kept.
//
// Not here: what an attempt is (package retrylens), who makes records (package retryhttp).
package emit
