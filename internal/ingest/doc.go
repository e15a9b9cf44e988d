// Package ingest brings NDJSON files of attempt records into a [Sink]: it finds
// out how a file is compressed, splits it into lines, decodes and validates them
// on several cores, hands accepted records over in large batches and reports
// every line that it refuses.
//
// It knows no storage; that is the Sink's. Its memory does not depend on the
// size of a file or of a line.
package ingest
