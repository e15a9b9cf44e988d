package clickhouse

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	chcolumn "github.com/ClickHouse/clickhouse-go/v2/lib/column"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

const (
	windowMargin = 10 * time.Minute // how far around the window records are read
	lostAfter    = 10 * time.Minute // how long after its last end an open operation is given up
)

// SQL returns the statements that [Store.Report] runs for people to read and run:
// those for each slice of attempts and, where the window is long enough, those for
// rollups. Parameters are named in them; heads are the buckets that hold, each with its
// level and version.
func (s *Store) SQL(q metrics.Query) ([]string, error) {
	shape := newFoldShape(s.database, q)
	var out []string
	for _, name := range statements(q) {
		text, err := shape.render(name)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	if _, ok := coarsest(q.Bucket); !ok || s.short(q) {
		return out, nil
	}
	if sketched(q) {
		out = append(out, sketchesSQL(s.database, q))
	}
	return append(out, countersSQL(s.database, q)), nil
}

func statements(q metrics.Query) []string {
	if q.Spend() {
		return []string{"fast", "spend"}
	}
	return []string{"fast", "slow"}
}

// foldSink takes what the operations of a slice add.
type foldSink interface {
	add(r *foldRow, statement string) // r is its own only until it returns
	addAttempts(attempts []retrylens.Attempt, w window) error
}

// foldJob is a fold: what is asked, the shapes of its two statements, and who
// takes the result.
type foldJob struct {
	q          metrics.Query
	names      []string // of the statements, the fast one first
	fast, rest foldShape
	sink       foldSink
}

// foldAttempts reads the window of q in slices and adds it to f.
func (s *Store) foldAttempts(ctx context.Context, f *folder, q metrics.Query) error {
	windows, err := s.slices(ctx, q)
	if err != nil {
		return err
	}
	shape := newFoldShape(s.database, q)
	job := foldJob{q: q, names: statements(q), fast: shape, rest: shape, sink: f}
	for _, w := range windows {
		if err := s.foldSlice(ctx, job, w); err != nil {
			return err
		}
	}
	return nil
}

// foldSlice runs the fast statement and folds the operations that it leaves: a
// few by the reference fold, since planning the slow statement costs more than
// folding thousands of records, many by the slow statement.
func (s *Store) foldSlice(ctx context.Context, j foldJob, w window) error {
	ctx = s.with(ctx, nil)
	left, err := s.foldStatement(ctx, j, j.names[0], j.fast, w)
	if err != nil {
		return err
	}
	if len(left.slowKeys) == 0 {
		return nil
	}
	if ctx, err = withKeys(ctx, left.slowKeys); err != nil {
		return fmt.Errorf("clickhouse: %w", err)
	}
	if len(left.slowKeys) <= s.directOperations {
		return s.foldDirectly(ctx, j, w, "cityHash64(tenant, logical_id) GLOBAL IN (SELECT key FROM slow_keys)")
	}
	if left, err = s.foldStatement(ctx, j, j.names[1], j.rest, w); err != nil {
		return err
	}
	for g := range left.giants {
		err := s.foldDirectly(ctx, j, w, "tenant = {giant_tenant:String} AND logical_id = {giant_logical_id:String}",
			clickhouse.Named("giant_tenant", g.tenant), clickhouse.Named("giant_logical_id", g.logicalID))
		if err != nil {
			return err
		}
	}
	return nil
}

// findings are what a statement leaves to the next step.
type findings struct {
	slowKeys []uint64       // hashes of the operations that the fast statement did not sum
	giants   map[giant]bool // operations that the slow statement did not sum
}

// withKeys sends the keys along with the query, as the table slow_keys.
func withKeys(ctx context.Context, keys []uint64) (context.Context, error) {
	return withTable(ctx, "slow_keys", "key", "UInt64", keys)
}

// withTable sends one column along with the query, as a table.
func withTable(ctx context.Context, name, col string, kind chcolumn.Type, values any) (context.Context, error) {
	table, err := ext.NewTable(name, ext.Column(col, kind))
	if err != nil {
		return nil, err
	}
	if _, err := table.Block().Columns[0].Append(values); err != nil {
		return nil, err
	}
	return clickhouse.Context(ctx, clickhouse.WithExternalTable(table)), nil
}

// parameters are the values of a statement for one slice.
func (j foldJob) parameters(w window) []any {
	params := []any{
		clickhouse.Named("from", w.from), clickhouse.Named("to", w.to),
		clickhouse.Named("margin", windowMargin.Milliseconds()), clickhouse.Named("lost_after", lostAfter.Milliseconds()),
		clickhouse.Named("as_of", j.q.AsOf.UnixMilli()), clickhouse.Named("bucket", max(1, j.q.Bucket.Milliseconds())),
	}
	for d, values := range j.q.Filters {
		params = append(params, clickhouse.Named(string(d), values))
	}
	return params
}

func (s *Store) foldStatement(ctx context.Context, j foldJob, name string, shape foldShape, w window) (findings, error) {
	found := findings{giants: map[giant]bool{}}
	text, err := shape.render(name)
	if err != nil {
		return found, err
	}
	rows, err := s.conn.Query(ctx, text, j.parameters(w)...)
	if err != nil {
		return found, fmt.Errorf("clickhouse: fold %s of %s: %w", name, w, err)
	}
	defer rows.Close()
	r := newFoldRow()
	to := r.destinations(rows.Columns())
	for rows.Next() {
		if err := r.scan(rows, to); err != nil {
			return found, fmt.Errorf("clickhouse: fold %s of %s: %w", name, w, err)
		}
		found.slowKeys = append(found.slowKeys, r.slowKeys...)
		if r.giant.logicalID == "" {
			j.sink.add(r, name)
			continue
		}
		found.giants[r.giant] = true // once per group of its records
	}
	if err := rows.Err(); err != nil {
		return found, fmt.Errorf("clickhouse: fold %s of %s: %w", name, w, err)
	}
	return found, nil
}

// foldDirectly reads operations of a slice and folds them with the reference
// fold.
func (s *Store) foldDirectly(ctx context.Context, j foldJob, w window, which string, params ...any) error {
	where := which + " AND operation_started_at >= fromUnixTimestamp64Milli({from:Int64} - {margin:Int64}, 'UTC')" +
		" AND operation_started_at < fromUnixTimestamp64Milli({to:Int64} + {margin:Int64}, 'UTC')"
	if len(j.q.Filters[metrics.DimTenant]) > 0 {
		where += " AND tenant IN {tenant:Array(String)}"
	}
	attempts, err := s.readBut(ctx, notFolded, where, append(j.parameters(w), params...))
	if err != nil {
		return fmt.Errorf("clickhouse: read operations of %s: %w", w, err)
	}
	return j.sink.addAttempts(attempts, w)
}
