// Package rollup is what rollups are, without a store: their levels, the figures
// that they hold as columns, and the plan which buckets answer a query and where
// attempts must be read. It is pure and belongs to all, like internal/metrics;
// SQL lives in internal/clickhouse and schema.
package rollup
