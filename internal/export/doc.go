// Package export writes what was asked for as files for other programs: CSV and
// Parquet, every value exact, columns named as everywhere else. Both are written
// from one [Table], so they cannot differ; what the columns of a report and of a
// list of operations are is told here once, for the command line, the API and the
// UI. JSON is not here: it is package metrics' own. It opens no file and no
// connection.
package export
