package clickhouse

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"

	"github.com/retrylens/retrylens/internal/metrics"
)

const (
	windowMargin = 10 * time.Minute // how far around the window records are read
	lostAfter    = 10 * time.Minute // how long after its last end an open operation is given up
)

// Report answers a query from the attempts, exactly but for quantiles, which are
// within 0.4 %. It reads the window in slices of bounded size, so that memory in
// the engine does not grow with the window.
func (s *Store) Report(ctx context.Context, q metrics.Query) (*metrics.Report, error) {
	if err := q.Validate(); err != nil {
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	windows, err := s.slices(ctx, q)
	if err != nil {
		return nil, err
	}
	f := newFolder(q)
	for _, w := range windows {
		if err := s.foldSlice(ctx, f, w); err != nil {
			return nil, err
		}
	}
	c, err := s.completeness(ctx, q, f.total)
	if err != nil {
		return nil, err
	}
	return metrics.NewReport(q, f.rows(), f.total.Open, c), nil
}

// SQL returns the statements that [Store.Report] runs for each slice of the
// window, for people to read and run; parameters are named in them.
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
	return out, nil
}

func statements(q metrics.Query) []string {
	if q.Spend() {
		return []string{"fast", "spend"}
	}
	return []string{"fast", "slow"}
}

// foldSlice runs the fast statement and folds the operations that it leaves: a
// few by the reference fold, since planning the slow statement costs more than
// folding thousands of records, many by the slow statement.
func (s *Store) foldSlice(ctx context.Context, f *folder, w window) error {
	ctx = s.with(ctx, nil)
	names := statements(f.q)
	left, err := s.foldStatement(ctx, f, names[0], w)
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
		return s.foldDirectly(ctx, f, w, "cityHash64(tenant, logical_id) GLOBAL IN (SELECT key FROM slow_keys)")
	}
	if left, err = s.foldStatement(ctx, f, names[1], w); err != nil {
		return err
	}
	for g := range left.giants {
		err := s.foldDirectly(ctx, f, w, "tenant = {giant_tenant:String} AND logical_id = {giant_logical_id:String}",
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
	table, err := ext.NewTable("slow_keys", ext.Column("key", "UInt64"))
	if err != nil {
		return nil, err
	}
	if _, err := table.Block().Columns[0].Append(keys); err != nil {
		return nil, err
	}
	return clickhouse.Context(ctx, clickhouse.WithExternalTable(table)), nil
}

// parameters are the values of a statement for one slice.
func (f *folder) parameters(w window) []any {
	params := []any{
		clickhouse.Named("from", w.from), clickhouse.Named("to", w.to),
		clickhouse.Named("margin", windowMargin.Milliseconds()), clickhouse.Named("lost_after", lostAfter.Milliseconds()),
		clickhouse.Named("as_of", f.q.AsOf.UnixMilli()), clickhouse.Named("bucket", max(1, f.q.Bucket.Milliseconds())),
	}
	for d, values := range f.q.Filters {
		params = append(params, clickhouse.Named(string(d), values))
	}
	return params
}

func (s *Store) foldStatement(ctx context.Context, f *folder, name string, w window) (findings, error) {
	found := findings{giants: map[giant]bool{}}
	text, err := newFoldShape(s.database, f.q).render(name)
	if err != nil {
		return found, err
	}
	rows, err := s.conn.Query(ctx, text, f.parameters(w)...)
	if err != nil {
		return found, fmt.Errorf("clickhouse: fold %s of %s: %w", name, w, err)
	}
	defer rows.Close()
	for rows.Next() {
		r := newFoldRow(len(f.q.GroupBy))
		if err := rows.Scan(r.destinations(rows.Columns())...); err != nil {
			return found, fmt.Errorf("clickhouse: fold %s of %s: %w", name, w, err)
		}
		found.slowKeys = append(found.slowKeys, r.slowKeys...)
		if r.giant.logicalID == "" {
			f.add(r, name)
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
func (s *Store) foldDirectly(ctx context.Context, f *folder, w window, which string, params ...any) error {
	where := which + " AND operation_started_at >= fromUnixTimestamp64Milli({from:Int64} - {margin:Int64}, 'UTC')" +
		" AND operation_started_at < fromUnixTimestamp64Milli({to:Int64} + {margin:Int64}, 'UTC')"
	if len(f.q.Filters[metrics.DimTenant]) > 0 {
		where += " AND tenant IN {tenant:Array(String)}"
	}
	attempts, err := s.read(ctx, where, append(f.parameters(w), params...))
	if err != nil {
		return fmt.Errorf("clickhouse: read operations of %s: %w", w, err)
	}
	q := f.q
	q.From, q.To = time.UnixMilli(w.from).UTC(), time.UnixMilli(w.to).UTC()
	p, err := metrics.FoldPartial(attempts, q)
	if err != nil {
		return err
	}
	f.addPartial(p)
	return nil
}
