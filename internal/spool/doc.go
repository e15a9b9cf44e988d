// Package spool keeps records on disk between the answer to their sender and
// their insert into a store: append-only segment files with a checksum per
// record, one fsync for all who wait, deletion only on demand.
//
// A [Spool] belongs to one process. Appenders call [Spool.Append]; a drainer
// looks at [Spool.Sealed], reads segments with [Spool.Read] and ends them with
// [Spool.Delete]. What was appended is never changed and never lost by this
// package: bytes that cannot be read any more go to the quarantine directory.
//
// The form of the files is described in docs/adr/0004-spool.md. What records
// mean, HTTP and stores are other packages'.
package spool
