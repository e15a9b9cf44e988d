// Package clickhouse keeps attempts in ClickHouse and folds them there. It is
// the only importer of clickhouse-go: migrations, the writer, the fold in SQL
// and the queries of single operations live here; what the figures mean lives
// in internal/metrics, which this package must agree with on every history.
package clickhouse
