package clickhouse

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrylens/retrylens/internal/metrics"
)

// window is a half-open range of operation starts in Unix milliseconds.
type window struct{ from, to int64 }

func (w window) String() string {
	const form = "2006-01-02T15:04:05.000Z"
	return time.UnixMilli(w.from).UTC().Format(form) + ".." + time.UnixMilli(w.to).UTC().Format(form)
}

// defaultSliceRows is about how many rows one slice reads: enough to make the margin
// around it and the planning small, few enough to keep the engine below 1 GiB
// even if none of them is a successful first attempt.
const defaultSliceRows = 1_000_000

// defaultDirectOperations is up to how many operations that are not one
// successful first attempt a slice folds with the reference fold: reading and folding
// so many costs about what planning the slow statement does.
const defaultDirectOperations = 10_000

// sliceGrain is the length that slices are multiples of.
const sliceGrain = 10 * time.Minute

// block counts the rows of one grain.
type block struct {
	start int64 // Unix milliseconds
	rows  uint64
}

// slices cuts the window where there are rows. A window whose granules hold few
// enough, which the index tells without reading any, is one slice.
func (s *Store) slices(ctx context.Context, q metrics.Query) ([]window, error) {
	if bounded := !q.From.IsZero() && !q.To.IsZero(); bounded && s.config.Cluster == "" {
		rows, err := s.estimate(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("clickhouse: estimate the window: %w", err)
		}
		if rows == 0 { // an operation has a record at its start
			return nil, nil
		}
		if rows <= s.sliceRows {
			return []window{{q.From.UnixMilli(), q.To.UnixMilli()}}, nil
		}
	}
	blocks, err := s.blocks(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("clickhouse: count the window: %w", err)
	}
	return cut(blocks, q, s.sliceRows), nil
}

// cut packs blocks, in order of time, into slices of at most rows rows or one
// block, clipped to the query's window. Time without rows costs nothing, so gaps
// are bridged.
func cut(blocks []block, q metrics.Query, rows uint64) []window {
	var out []window
	var held uint64
	grain := sliceGrain.Milliseconds()
	for _, b := range blocks {
		w := clip(window{b.start, b.start + grain}, q)
		last := len(out) - 1
		switch {
		case w.from >= w.to:
		case last >= 0 && held+b.rows <= rows:
			out[last].to = w.to
			held += b.rows
		default:
			out = append(out, w)
			held = b.rows
		}
	}
	return out
}

func clip(w window, q metrics.Query) window {
	if !q.From.IsZero() {
		w.from = max(w.from, q.From.UnixMilli())
	}
	if !q.To.IsZero() {
		w.to = min(w.to, q.To.UnixMilli())
	}
	return w
}

// inWindow is the condition that an attempt's own start lies in the window, its
// tenant among those asked for.
func inWindow(q metrics.Query) (where string, params []any) {
	where = "1"
	if !q.From.IsZero() {
		where += " AND operation_started_at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')"
		params = append(params, clickhouse.Named("from", q.From.UnixMilli()))
	}
	if !q.To.IsZero() {
		where += " AND operation_started_at < fromUnixTimestamp64Milli({to:Int64}, 'UTC')"
		params = append(params, clickhouse.Named("to", q.To.UnixMilli()))
	}
	if tenants := q.Filters[metrics.DimTenant]; len(tenants) > 0 {
		where += " AND tenant IN {tenant:Array(String)}"
		params = append(params, clickhouse.Named("tenant", tenants))
	}
	return where, params
}

// estimate is how many rows the granules hold that a read of the window touches.
func (s *Store) estimate(ctx context.Context, q metrics.Query) (total uint64, err error) {
	where, params := inWindow(q)
	rows, err := s.conn.Query(s.with(ctx, nil), "EXPLAIN ESTIMATE SELECT tenant FROM "+s.database+".attempts WHERE "+where, params...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var database, table string
		var parts, n, marks uint64
		if err := rows.Scan(&database, &table, &parts, &n, &marks); err != nil {
			return 0, err
		}
		total += n
	}
	return total, rows.Err()
}

// countAttempts is how many rows a read of the window touches.
func (s *Store) countAttempts(ctx context.Context, q metrics.Query) (total uint64, err error) {
	where, params := inWindow(q)
	err = s.value(ctx, &total, "SELECT count() FROM "+s.database+".attempts WHERE "+where, params...)
	return total, err
}

func (s *Store) blocks(ctx context.Context, q metrics.Query) ([]block, error) {
	where, params := inWindow(q)
	text := "SELECT intDiv(toUnixTimestamp64Milli(operation_started_at), {grain:Int64}) * {grain:Int64} AS start, count() FROM " + s.database + ".attempts WHERE " + where
	params = append(params, clickhouse.Named("grain", sliceGrain.Milliseconds()))
	rows, err := s.conn.Query(s.with(ctx, nil), text+" GROUP BY start ORDER BY start", params...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []block
	for rows.Next() {
		var b block
		if err := rows.Scan(&b.start, &b.rows); err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, rows.Err()
}
