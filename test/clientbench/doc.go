// Command clientbench measures what the client adds to a call, and what its emitter takes of one while
// its sink is down, slow or full, and writes its section of docs/benchmarks.md: beside a bare
// http.Transport, go-retryablehttp and failsafe-go, and an emitter that does nothing, in the same run.
package main
