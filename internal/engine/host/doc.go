// Package host is the engine's own side of the embedded store: it writes
// ClickHouse's configuration, runs it through package chdb, tells in engine.json
// where it answers, and ends it when it is told to or when the last client has
// been gone for long enough.
//
// Only cmd/engine may import it.  What clients need is in package engine.
package host
