// Package engine is the client side of the embedded store: a ClickHouse of our
// own in a process of its own, one for each data directory.
//
// Open makes sure that an engine runs in a directory, starting it detached if
// none does, and makes this process one of its clients until Close or its end.
// The engine leaves by itself 10 s after its last client has gone: no client ever
// stops it, and none leaves it behind.  An engine that crashed is started again by
// the next call that needs it.
//
// The engine listens on loopback only, on ports that differ from start to start.
// Never keep an address: use DialTCP as the dialer of a connection pool.  User and
// password stay the same for a directory.
//
// An insert that was not acknowledged may be in or not.  Send it again without a
// deduplication token, into a table in which rows of one key replace each other: a
// token may be taken while its rows were lost (see docs/adr/0001-embedded-engine.md).
//
// Package datadir documents the files of a data directory.  To add to ClickHouse's
// own configuration, set Options.ExtraConfig or write DIR/extra.xml; both are what
// would stand inside <clickhouse>, and count from the next start.
//
// This package does not link the library: cmd/engine does, through package host.
package engine
