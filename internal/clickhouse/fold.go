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

func (s *Store) foldSlice(ctx context.Context, f *folder, w window) error {
	shape := newFoldShape(s.database, f.q)
	ctx = s.with(ctx, nil)
	var found findings
	for _, name := range statements(f.q) {
		text, err := shape.render(name)
		if err != nil {
			return err
		}
		if name != "fast" {
			if len(found.slowKeys) == 0 {
				break
			}
			if ctx, err = withKeys(ctx, found.slowKeys); err != nil {
				return fmt.Errorf("clickhouse: %w", err)
			}
		}
		if err := s.foldStatement(ctx, f, text, name, f.parameters(w), &found); err != nil {
			return fmt.Errorf("clickhouse: fold %s of %s: %w", name, w, err)
		}
	}
	for g := range found.giants {
		if err := s.foldGiant(ctx, f, g, w); err != nil {
			return fmt.Errorf("clickhouse: fold operation %s: %w", g.logicalID, err)
		}
	}
	return nil
}

// findings are what a statement leaves to the next step.
type findings struct {
	slowKeys []uint64 // hashes of the operations that the fast statement did not sum
	giants   map[giant]bool
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

func (s *Store) foldStatement(ctx context.Context, f *folder, text, name string, params []any, found *findings) error {
	rows, err := s.conn.Query(ctx, text, params...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		r := newFoldRow(len(f.q.GroupBy))
		if err := rows.Scan(r.destinations(rows.Columns())...); err != nil {
			return err
		}
		found.slowKeys = append(found.slowKeys, r.slowKeys...)
		if r.giant.logicalID == "" {
			f.add(r, name)
			continue
		}
		if found.giants == nil {
			found.giants = map[giant]bool{}
		}
		found.giants[r.giant] = true // once per group of its records
	}
	return rows.Err()
}
