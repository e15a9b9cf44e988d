// Command clientbench measures what the client adds to a call and writes its section of
// docs/benchmarks.md: beside a bare http.Transport, go-retryablehttp and failsafe-go in the
// same run.
package main
