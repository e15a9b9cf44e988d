package clickhouse

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"

	"github.com/retrylens/retrylens/internal/metrics"
)

// A search without an id or key walks back through time in stretches that double,
// from firstStretch to maxStretch, until it has found enough.
const (
	firstStretch = 5 * time.Minute
	maxStretch   = 12 * time.Hour
	// candidatesAtOnce is how many operations are listed at once.
	candidatesAtOnce = 2000
)

// Operations lists operations as [metrics.Find] does: those that match, the latest
// start first. The engine proposes candidates by what their rows hold; the
// reference fold judges each of them whole.
func (s *Store) Operations(ctx context.Context, search metrics.Search) ([]metrics.Operation, error) {
	if err := search.Validate(); err != nil {
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	all, ok, err := s.searchBounds(ctx, search)
	if err != nil || !ok {
		return nil, err
	}
	f := finder{store: s, search: search, window: all, stretch: firstStretch.Milliseconds()}
	if f.selective() {
		f.stretch = math.MaxInt64
	}
	for !f.done() {
		if err := f.step(ctx); err != nil {
			return nil, fmt.Errorf("clickhouse: search operations: %w", err)
		}
	}
	return f.found[:min(len(f.found), search.Limit)], nil
}

// searchBounds is the part of the search's window where there are rows; false
// without any.
func (s *Store) searchBounds(ctx context.Context, search metrics.Search) (window, bool, error) {
	var w window
	var n uint64
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	if !search.From.IsZero() {
		from = search.From.UnixMilli()
	}
	if !search.To.IsZero() {
		to = search.To.UnixMilli()
	}
	if !search.After.IsZero() {
		to = min(to, search.After.Start.UnixMilli()+1)
	}
	err := s.conn.QueryRow(s.with(ctx, nil), "SELECT count(), toUnixTimestamp64Milli(min(operation_started_at)), toUnixTimestamp64Milli(max(operation_started_at)) FROM "+
		s.database+".attempts").Scan(&n, &w.from, &w.to)
	if err != nil {
		return w, false, fmt.Errorf("clickhouse: bounds of the attempts: %w", err)
	}
	w = window{max(w.from, from), min(w.to+1, to)}
	return w, n > 0 && w.from < w.to, nil
}

// finder walks back through a window.
type finder struct {
	store   *Store
	search  metrics.Search
	window  window // what is left of it
	stretch int64  // milliseconds that the next step looks at
	found   []metrics.Operation
}

func (f *finder) done() bool {
	return len(f.found) >= f.search.Limit || f.window.from >= f.window.to
}

// selective tells a search by something of which few rows have the same; their index
// finds them in any window.
func (f *finder) selective() bool {
	return len(f.search.LogicalIDs)+len(f.search.IdempotencyKeys)+len(f.search.ProviderRequestIDs) > 0
}

// step lists the latest stretch of what is left, or the latest candidates of it.
func (f *finder) step(ctx context.Context) error {
	w := f.window
	if f.stretch < w.to-w.from {
		w.from = w.to - f.stretch
	}
	places, err := f.candidates(ctx, w)
	if err != nil {
		return err
	}
	if len(places) < candidatesAtOnce {
		f.window.to = w.from
		f.stretch = min(max(f.stretch, f.stretch*2), maxStretch.Milliseconds())
		if f.selective() {
			f.stretch = math.MaxInt64
		}
	} else { // there are more before the last of them
		w.from = places[len(places)-1].Start.UnixMilli()
		f.window.to = w.from + 1
	}
	ops, err := f.judge(ctx, w, places)
	if err != nil || len(places) == 0 {
		return err
	}
	f.search.After = places[len(places)-1]
	f.found = append(f.found, ops...)
	return nil
}

// candidates are the places of the operations of the window that may match, at most
// candidatesAtOnce.
func (f *finder) candidates(ctx context.Context, w window) ([]metrics.Cursor, error) {
	text, params := f.statement(w)
	rows, err := f.store.conn.Query(f.store.with(ctx, nil), text, params...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []metrics.Cursor
	for rows.Next() {
		var c metrics.Cursor
		var ms int64
		if err := rows.Scan(&c.Tenant, &c.LogicalID, &ms); err != nil {
			return nil, err
		}
		c.Start = time.UnixMilli(ms).UTC()
		out = append(out, c)
	}
	return out, rows.Err()
}

// statement finds the exact start of every operation of the window of which some row
// meets each condition.
func (f *finder) statement(w window) (text string, params []any) {
	conditions, params := f.conditions()
	params = append(params, clickhouse.Named("from", w.from), clickhouse.Named("to", w.to),
		clickhouse.Named("margin", windowMargin.Milliseconds()), clickhouse.Named("limit", candidatesAtOnce))
	rows := "operation_started_at >= fromUnixTimestamp64Milli({from:Int64} - {margin:Int64}, 'UTC')" +
		" AND operation_started_at < fromUnixTimestamp64Milli({to:Int64} + {margin:Int64}, 'UTC')"
	if len(f.search.Filters[metrics.DimTenant]) > 0 {
		rows += " AND tenant IN {tenant:Array(String)}"
	}
	table := f.store.database + ".attempts"
	inner := "SELECT tenant, logical_id, hop, attempt, argMax(toUnixTimestamp64Milli(operation_started_at), version) AS at, argMax(outcome, version) AS last_outcome" +
		" FROM " + table + " WHERE " + rows
	for _, c := range conditions {
		inner += " AND logical_id GLOBAL IN (SELECT logical_id FROM " + table + " WHERE " + rows + " AND " + c + ")"
	}
	inner += " GROUP BY tenant, logical_id, hop, attempt"
	having := "start >= {from:Int64} AND start < {to:Int64}"
	if after := f.search.After; !after.IsZero() {
		having += " AND (start, tenant, logical_id) < ({after_ms:Int64}, {after_tenant:String}, {after_logical_id:String})"
		params = append(params, clickhouse.Named("after_ms", after.Start.UnixMilli()),
			clickhouse.Named("after_tenant", after.Tenant), clickhouse.Named("after_logical_id", after.LogicalID))
	}
	return "SELECT tenant, logical_id," +
		" if(countIf(last_outcome != 'key_mismatch') > 0, minIf(at, last_outcome != 'key_mismatch'), min(at)) AS start" +
		" FROM (" + inner + ") GROUP BY tenant, logical_id HAVING " + having +
		" ORDER BY start DESC, tenant DESC, logical_id DESC LIMIT {limit:UInt32}", params
}

// conditions are what some row of a match holds, home dimensions as one: the
// record that an operation is filed under has them all.
func (f *finder) conditions() (out []string, params []any) {
	add := func(column string, values []string) string {
		params = append(params, clickhouse.Named(column, values))
		return column + " IN {" + column + ":Array(String)}"
	}
	var home []string
	for _, d := range metrics.Dimensions {
		if values := f.search.Filters[d]; len(values) > 0 {
			home = append(home, add(string(d), values))
		}
	}
	if len(home) > 0 && !f.onlyTenant() {
		out = append(out, strings.Join(home, " AND "))
	}
	for column, values := range map[string][]string{
		"logical_id": f.search.LogicalIDs, "idempotency_key": f.search.IdempotencyKeys, "provider_request_id": f.search.ProviderRequestIDs,
		"error_class": texts(f.search.ErrorClasses), "outcome": texts(f.search.Outcomes),
	} {
		if len(values) > 0 {
			out = append(out, add(column, values))
		}
	}
	return out, params
}

func (f *finder) onlyTenant() bool {
	return len(f.search.Filters) == 1 && len(f.search.Filters[metrics.DimTenant]) > 0
}

func texts[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// judge reads the candidates whole and keeps those that match, at first about as many as are
// wanted: most candidates match.
func (f *finder) judge(ctx context.Context, w window, places []metrics.Cursor) ([]metrics.Operation, error) {
	const least, most = 50, 500
	var found []metrics.Operation
	for n := min(max(least, 2*f.search.Limit), most); len(places) > 0 && len(f.found)+len(found) < f.search.Limit; n = min(2*n, most) {
		part := places[:min(n, len(places))]
		places = places[len(part):]
		ops, err := f.read(ctx, w, part)
		if err != nil {
			return nil, err
		}
		found = append(found, ops...)
	}
	return found, nil
}

func (f *finder) read(ctx context.Context, w window, places []metrics.Cursor) ([]metrics.Operation, error) {
	table, err := ext.NewTable("candidates", ext.Column("tenant", "String"), ext.Column("logical_id", "String"))
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		if err := table.Append(p.Tenant, p.LogicalID); err != nil {
			return nil, err
		}
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithExternalTable(table))
	attempts, err := f.store.read(ctx, "logical_id GLOBAL IN (SELECT logical_id FROM candidates) AND (tenant, logical_id) GLOBAL IN (SELECT tenant, logical_id FROM candidates)"+
		" AND operation_started_at >= fromUnixTimestamp64Milli({from:Int64} - {margin:Int64}, 'UTC')"+
		" AND operation_started_at < fromUnixTimestamp64Milli({to:Int64} + {margin:Int64}, 'UTC')",
		[]any{clickhouse.Named("from", w.from), clickhouse.Named("to", w.to), clickhouse.Named("margin", windowMargin.Milliseconds())})
	if err != nil {
		return nil, err
	}
	var found []metrics.Operation
	for _, op := range metrics.Operations(attempts, f.search.AsOf) {
		if f.search.Matches(&op) {
			found = append(found, op)
		}
	}
	metrics.SortFound(found)
	return found, nil
}
