// Package api is the HTTP API of analyze serve, under /api/v1: reports, series,
// operations, completeness and status, described by an OpenAPI 3.1 document that is
// made from the handlers. Parameters mean what package query says, answers are JSON,
// CSV or Parquet, and an error is a problem document (RFC 9457) that names the
// parameter. It asks a [Source] and knows no store, no authentication and no page.
package api
