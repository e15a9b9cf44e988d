package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
)

// minuteMS is a minute in Unix milliseconds.
const minuteMS = int64(time.Minute / time.Millisecond)

// startsApart is how far the starts of the records of one operation may lie
// apart: 5 minutes of clock skew (docs/record.md).
const startsApart = 5 * minuteMS

// marksAtOnce is how many marks are read at once.
const marksAtOnce = 1_000_000

// mark says that a block of rows came into a minute.
type mark struct {
	minute   int64 // Unix milliseconds
	id       string
	markedAt time.Time
}

// marks reads the marks that are not done, by minute.
func (s *Store) marks(ctx context.Context) ([]mark, error) {
	rows, err := s.conn.Query(s.with(ctx, nil), "SELECT minute, toString(mark), min(marked_at) FROM "+s.database+".rollup_marks"+
		" GROUP BY minute, mark HAVING sum(sign) > 0 ORDER BY minute LIMIT {limit:UInt64}", clickhouse.Named("limit", marksAtOnce))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []mark
	for rows.Next() {
		var m mark
		var minute time.Time
		if err := rows.Scan(&minute, &m.id, &m.markedAt); err != nil {
			return nil, err
		}
		m.minute = minute.UnixMilli()
		out = append(out, m)
	}
	return out, rows.Err()
}

// unmark says that rollups have seen what the marks stand for. What another finaliser has
// ended meanwhile is not ended again: a second row of sign -1 finds no pair to vanish with.
func (s *Store) unmark(ctx context.Context, marks []mark) error {
	if len(marks) == 0 {
		return nil
	}
	ended, err := ext.NewTable("ended_marks", ext.Column("minute", "DateTime('UTC')"), ext.Column("id", "String"))
	if err != nil {
		return err
	}
	minutes := make([]int64, len(marks))
	for i, m := range marks {
		if err := ended.Append(time.UnixMilli(m.minute).UTC(), m.id); err != nil {
			return err
		}
		minutes[i] = m.minute
	}
	ctx = clickhouse.Context(s.with(ctx, oneBlock), clickhouse.WithExternalTable(ended))
	return s.conn.Exec(ctx, "INSERT INTO "+s.database+".rollup_marks (minute, mark, marked_at, sign)"+
		" SELECT minute, mark, min(marked_at), -1 FROM "+s.database+".rollup_marks"+
		" WHERE minute >= toDateTime({from:Int64}, 'UTC') AND minute <= toDateTime({to:Int64}, 'UTC') AND (minute, mark) GLOBAL IN (SELECT minute, toUUID(id) FROM ended_marks)"+
		" GROUP BY minute, mark HAVING sum(sign) > 0",
		clickhouse.Named("from", slices.Min(minutes)/1000), clickhouse.Named("to", slices.Max(minutes)/1000))
}

// From doneMarks rows of marks on they are merged, at most every mergeEvery.
const (
	doneMarks  = 20_000
	mergeEvery = time.Hour
)

// mergeMarks has the engine take the marks away that are done. It would do so by itself, but
// not soon where there are few parts, and every report reads them. No pass depends on it: a user
// may lack the right, merges may be stopped, and of a cluster it is this node only.
func (s *Store) mergeMarks(ctx context.Context) error {
	var rows uint64
	err := s.value(ctx, &rows, "SELECT sum(rows) FROM system.parts WHERE active AND database = {db:String} AND table = {table:String}",
		clickhouse.Named("db", s.database), clickhouse.Named("table", s.local("rollup_marks")))
	last := s.mergedMarks.Load()
	if err != nil || rows <= doneMarks || last != 0 && time.Since(time.Unix(last, 0)) < mergeEvery {
		return err
	}
	s.mergedMarks.Store(time.Now().Unix())
	return s.conn.Exec(s.with(ctx, clickhouse.Settings{"optimize_skip_merged_partitions": 1}), "OPTIMIZE TABLE "+s.database+"."+s.local("rollup_marks")+" FINAL")
}

// markMinutes marks minutes, for what no view sees.
func (s *Store) markMinutes(ctx context.Context, minutes []int64) error {
	if len(minutes) == 0 {
		return nil
	}
	ctx, err := withTable(s.with(ctx, oneBlock), "wanted_minutes", "minute", "UInt32", seconds(minutes))
	if err != nil {
		return err
	}
	return s.conn.Exec(ctx, "INSERT INTO "+s.database+".rollup_marks (minute, mark, marked_at, sign)"+
		" SELECT toDateTime(minute, 'UTC'), generateUUIDv4(), now64(3), 1 FROM wanted_minutes")
}

// markEverything marks every minute that has attempts.
func (s *Store) markEverything(ctx context.Context) error {
	return s.conn.Exec(s.with(ctx, oneBlock), "INSERT INTO "+s.database+".rollup_marks (minute, mark, marked_at, sign)"+
		" SELECT minute, generateUUIDv4(), now64(3), 1 FROM (SELECT DISTINCT toDateTime(toStartOfMinute(operation_started_at), 'UTC') AS minute FROM "+s.database+".attempts)")
}

// sharedMinutes returns the minutes around the given ones that have records of
// operations which have records in these, too: where such an operation started
// before or starts now. Operations never leave a minute in which they have a
// record, as such a record is only replaced by one of the same minute.
func (s *Store) sharedMinutes(ctx context.Context, minutes []int64) ([]int64, error) {
	near, edge := neighbours(minutes)
	if len(near) == 0 {
		return nil, nil
	}
	ctx, err := withTable(s.with(ctx, nil), "near_minutes", "minute", "UInt32", seconds(near))
	if err == nil {
		ctx, err = withTable(ctx, "edge_minutes", "minute", "UInt32", seconds(edge))
	}
	if err != nil {
		return nil, err
	}
	attempts := "FROM " + s.database + ".attempts WHERE operation_started_at >= fromUnixTimestamp64Milli({from:Int64}) AND operation_started_at < fromUnixTimestamp64Milli({to:Int64})" +
		" AND toDate(operation_started_at) IN {days:Array(Date)} AND toUnixTimestamp(toStartOfMinute(operation_started_at)) GLOBAL IN "
	return s.minutes(ctx, "SELECT DISTINCT toInt64(toUnixTimestamp(toStartOfMinute(operation_started_at))) * 1000 "+attempts+"(SELECT minute FROM near_minutes)"+
		" AND cityHash64(tenant, logical_id) GLOBAL IN (SELECT cityHash64(tenant, logical_id) "+attempts+"(SELECT minute FROM edge_minutes))",
		clickhouse.Named("from", min(near[0], edge[0])), clickhouse.Named("to", max(near[len(near)-1], edge[len(edge)-1])+minuteMS),
		clickhouse.Named("days", days(append(slices.Clone(near), edge...))))
}

// neighbours are the minutes within 5 minutes of the given ones, and those of the
// given ones that have such; both sorted.
func neighbours(minutes []int64) (near, edge []int64) {
	in := make(map[int64]bool, len(minutes))
	for _, m := range minutes {
		in[m] = true
	}
	seen := map[int64]bool{}
	for _, m := range minutes {
		isEdge := false
		for d := -startsApart; d <= startsApart; d += minuteMS {
			if in[m+d] {
				continue
			}
			isEdge = true
			if !seen[m+d] {
				seen[m+d] = true
				near = append(near, m+d)
			}
		}
		if isEdge {
			edge = append(edge, m)
		}
	}
	slices.Sort(near)
	slices.Sort(edge)
	return near, edge
}

// days are the days of some minutes, for the partitions of attempts.
func days(minutes []int64) []string {
	const day = 24 * 60 * minuteMS
	var out []string
	seen := map[int64]bool{}
	for _, m := range minutes {
		if d := m / day; !seen[d] {
			seen[d] = true
			out = append(out, time.UnixMilli(d*day).UTC().Format(time.DateOnly))
		}
	}
	return out
}

// minutes scans a column of Unix milliseconds, sorted.
func (s *Store) minutes(ctx context.Context, query string, params ...any) ([]int64, error) {
	rows, err := s.conn.Query(ctx, query, params...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []int64
	for rows.Next() {
		var ms int64
		if err := rows.Scan(&ms); err != nil {
			return nil, err
		}
		out = append(out, ms)
	}
	slices.Sort(out)
	return out, rows.Err()
}

// dueLosses are the minutes in which an open operation has become lost.
func (s *Store) dueLosses(ctx context.Context, asOf time.Time) ([]int64, error) {
	return s.minutes(s.with(ctx, nil), "SELECT toInt64(toUnixTimestamp(bucket)) * 1000 FROM "+s.database+".rollups WHERE level = 'minute' AND kind = 'bucket'"+
		" GROUP BY bucket HAVING argMax(next_loss_ms, version) <= {as_of:Int64}", clickhouse.Named("as_of", asOf.UnixMilli()))
}

// overlayMark is a settlement or a price that came.
type overlayMark struct {
	kind, provider, name string
	validFrom, markedAt  time.Time
	id                   string
}

func (s *Store) overlayMarks(ctx context.Context) ([]overlayMark, error) {
	rows, err := s.conn.Query(s.with(ctx, nil), "SELECT toString(kind), provider, name, valid_from, toString(mark), min(marked_at) FROM "+s.database+".rollup_overlay_marks"+
		" GROUP BY kind, provider, name, valid_from, mark HAVING sum(sign) > 0 LIMIT {limit:UInt64}", clickhouse.Named("limit", marksAtOnce))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []overlayMark
	for rows.Next() {
		var m overlayMark
		if err := rows.Scan(&m.kind, &m.provider, &m.name, &m.validFrom, &m.id, &m.markedAt); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, rows.Err()
}

// resolveOverlays marks the minutes of the attempts that settlements and prices
// are about. A crash before they are done marks them once more.
func (s *Store) resolveOverlays(ctx context.Context) error {
	marks, err := s.overlayMarks(ctx)
	if err != nil || len(marks) == 0 {
		return err
	}
	minutes, err := s.overlaidMinutes(ctx, marks)
	if err != nil {
		return fmt.Errorf("find what settlements and prices are about: %w", err)
	}
	if err := s.markMinutes(ctx, minutes); err != nil {
		return err
	}
	return s.unmarkOverlays(ctx, marks)
}

// overlaidMinutes: a settlement is about the attempts of that provider and request
// id; a price about those of that provider and model from its start on that come
// without a cost.
func (s *Store) overlaidMinutes(ctx context.Context, marks []overlayMark) ([]int64, error) {
	var ids []string
	var prices [][]any
	for _, m := range marks {
		switch {
		case m.kind == "price":
			prices = append(prices, []any{m.provider, m.name, m.validFrom})
		case m.name != "":
			ids = append(ids, m.name)
		}
	}
	ctx, err := withTable(s.with(ctx, nil), "settled", "id", "String", ids)
	if err != nil {
		return nil, err
	}
	const minute = "SELECT DISTINCT toInt64(toUnixTimestamp(toStartOfMinute(operation_started_at))) * 1000 FROM "
	var out []int64
	if len(ids) > 0 {
		if out, err = s.minutes(ctx, minute+s.database+".attempts WHERE provider_request_id GLOBAL IN (SELECT id FROM settled)"); err != nil {
			return nil, err
		}
	}
	for _, p := range prices {
		more, err := s.minutes(s.with(ctx, nil), minute+s.database+".attempts WHERE provider = {provider:String} AND model = {model:String}"+
			" AND cost_usd IS NULL AND started_at >= fromUnixTimestamp64Milli({valid_from:Int64})",
			clickhouse.Named("provider", p[0]), clickhouse.Named("model", p[1]), clickhouse.Named("valid_from", p[2].(time.Time).UnixMilli()))
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func (s *Store) unmarkOverlays(ctx context.Context, marks []overlayMark) error {
	b, err := s.conn.PrepareBatch(s.with(ctx, nil), "INSERT INTO "+s.database+".rollup_overlay_marks (kind, provider, name, valid_from, mark, marked_at, sign)")
	if err != nil {
		return err
	}
	defer b.Abort() //nolint:errcheck // after Send it does nothing
	for _, m := range marks {
		if err := b.Append(m.kind, m.provider, m.name, m.validFrom, m.id, m.markedAt, int8(-1)); err != nil {
			return err
		}
	}
	return b.Send()
}
