package clickhouse

import (
	"context"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrylens/retrylens/internal/metrics"
)

// Empty forgets every attempt, for tests that run many cases on one schema.
func (s *Store) Empty(ctx context.Context) error {
	for _, table := range []string{"attempts", "emitter_seqs", "settlements", "prices", "rollups", "rollup_marks", "rollup_overlay_marks", "rollup_runs"} {
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

// SetAttemptsWindow sets up to how long a window is read from attempts alone.
func (s *Store) SetAttemptsWindow(d time.Duration) { s.attemptsWindow = d }

// SetQuantileRows sets up to how many attempts are read for quantiles that
// rollups do not hold.
func (s *Store) SetQuantileRows(n uint64) { s.quantileRows = n }

// WithSteps has step called before each statement of a pass that writes.
func (o FinaliseOptions) WithSteps(step func(name string) error) FinaliseOptions {
	o.step = step
	return o
}

// PlannedReport is Report, and how many buckets and spans of attempts it read.
func (s *Store) PlannedReport(ctx context.Context, q metrics.Query) (r *metrics.Report, buckets, spans int, err error) {
	m := momentOf(ctx)
	expired, err := s.expired(ctx, m, q)
	if err != nil {
		return nil, 0, 0, err
	}
	planned, ok, err := s.planRollups(ctx, m, q, expired)
	if err != nil {
		return nil, 0, 0, err
	}
	if ok {
		for _, b := range planned.plan.Buckets {
			buckets += len(b)
		}
		spans = len(planned.plan.Attempts)
	}
	r, err = s.Report(ctx, q)
	return r, buckets, spans, err
}

// MarkedWithoutRows reads the marks, then the minutes that have rows, and returns
// how many minutes are marked and which of these have no rows.
func (s *Store) MarkedWithoutRows(ctx context.Context) (marked int, missing []int64, err error) {
	marks, err := s.marks(ctx)
	if err != nil {
		return 0, nil, err
	}
	rows, err := s.minutes(ctx, "SELECT DISTINCT toInt64(toUnixTimestamp(toStartOfMinute(operation_started_at))) * 1000 FROM "+s.database+".attempts")
	if err != nil {
		return 0, nil, err
	}
	for _, m := range marks {
		if !slices.Contains(rows, m.minute) {
			missing = append(missing, m.minute)
		}
	}
	return len(marks), missing, nil
}

// SetFinaliseRows sets about how many attempts a chunk of a pass has and how many
// rows it inserts at once.
func (s *Store) SetFinaliseRows(attempts uint64, rows int) {
	s.finaliseRows, s.rollupRows = attempts, rows
}

// Silence makes the store forget that a holder of leases was ever heard of.
func (s *Store) Silence(ctx context.Context, holder string) error {
	return s.conn.Exec(clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"mutations_sync": 1})),
		"ALTER TABLE "+s.database+".leases DELETE WHERE holder = '"+holder+"'")
}

// Value scans the one row that a statement gives.
func (s *Store) Value(ctx context.Context, q string, to ...any) error {
	return s.conn.QueryRow(ctx, q).Scan(to...)
}
