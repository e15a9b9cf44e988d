//go:build !linux || (!amd64 && !arm64)

package chdb

import "errors"

// Session cannot be had here.
type Session struct{}

// Start fails: there is no libchdb.so for this platform.
func Start(Options) (*Session, error) {
	return nil, errors.New("chdb: the embedded engine needs Linux with glibc on amd64 or arm64; " +
		"use an external ClickHouse server (--store clickhouse://...)")
}

// Done never gets a value.
func (*Session) Done() <-chan error { return nil }

// Version is empty.
func (*Session) Version() string { return "" }

// Errors is empty.
func (*Session) Errors() []string { return nil }

// Up is false.
func (*Session) Up() bool { return false }

// Stop does nothing.
func (*Session) Stop(<-chan struct{}) {}
