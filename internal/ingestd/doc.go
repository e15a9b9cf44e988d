// Package ingestd is the ingest service: the transport of the attempt record
// over HTTP (docs/record.md). A body is decoded and validated line by line,
// appended to a spool and answered when it is durable there; package drain brings
// the spool into a store, package tokens says who may send for which tenant.
//
// It knows no store: how one is reached and what its errors mean is told by
// package app.
package ingestd
