package clickhouse

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Empty forgets every attempt, for tests that run many cases on one schema.
func (s *Store) Empty(ctx context.Context) error {
	for _, table := range []string{"attempts", "emitter_seqs"} {
		if err := s.conn.Exec(ctx, "TRUNCATE TABLE "+s.database+"."+table); err != nil {
			return err
		}
	}
	return nil
}

// Exec runs a statement.
func (s *Store) Exec(ctx context.Context, q string) error { return s.conn.Exec(ctx, q) }

// MaxRecords is the size from which an operation is folded outside the engine.
const MaxRecords = maxRecords

// SetSliceRows makes reports read the window in slices of about n rows.
func (s *Store) SetSliceRows(n uint64) { s.sliceRows = n }

// CreateQuery is how the server would make a table again.
func (s *Store) CreateQuery(ctx context.Context, table string) (string, error) {
	return s.createQuery(ctx, table)
}

// ColumnNames are the columns of a table.
func (s *Store) ColumnNames(ctx context.Context, table string) ([]string, error) {
	var names []string
	err := s.conn.QueryRow(ctx, "SELECT groupArray(name) FROM system.columns WHERE database = {db:String} AND table = {table:String}",
		clickhouse.Named("db", s.database), clickhouse.Named("table", table)).Scan(&names)
	return names, err
}

// Parse has the server parse a statement without running it.
func (s *Store) Parse(ctx context.Context, q string) error {
	var out string
	return s.conn.QueryRow(ctx, "SELECT formatQuery({q:String})", clickhouse.Named("q", q)).Scan(&out)
}

// SetDirectOperations sets up to how many operations of a slice are folded
// outside the engine; -1 = none.
func (s *Store) SetDirectOperations(n int) { s.directOperations = n }
