package clickhouse

import "context"

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
