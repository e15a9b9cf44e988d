// Package wire decodes the attempt record (docs/record.md): one JSON object,
// usually one line of NDJSON, to one [retrylens.Attempt]. [Fields] names the
// keys of the record.
//
// It reports syntax, types and ranges of single fields. Rules that depend on
// several fields or on the clock are [retrylens.Attempt.Validate]'s; reading
// files and requests is done elsewhere. Encoding is
// [retrylens.Attempt.AppendJSON].
package wire
