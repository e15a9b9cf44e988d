// Package chdb runs ClickHouse out of libchdb.so inside this process.  It loads
// the library without cgo, has its clickhouse-local start the HTTP and the native
// listener, and leaves that local session at its prompt until it is to stop.
//
// Only cmd/engine may import it (through package host): the library takes over
// SIGSEGV and file descriptors 0 to 2, ends the process when it likes, and its
// threads do not stop for anybody.
package chdb
