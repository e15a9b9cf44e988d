package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrylens/retrylens/internal/rollup"
)

// standing is how far the rollups are, which reports are planned by.
type standing struct {
	now       time.Time     // the server's clock
	retention time.Duration // of attempts
	rolled    bool          // there are rollups; not so where the schema is older
	usable    bool          // marks tell all that rollups have not seen
	lastPass  time.Time     // when the last pass ended; zero = never, or longer ago than marks are kept
	marked    []markedMinute
}

// markedMinute has got rows that no rollup has seen.
type markedMinute struct {
	minute int64     // Unix milliseconds
	since  time.Time // when it was marked first
}

// standing reads in an order that rests on how the finaliser works: settlements and prices
// become marks before they stop waiting, and marks go when their buckets are there.
func (s *Store) standing(ctx context.Context, m *moment) (*standing, error) {
	return once(ctx, m, s, "standing", func(ctx context.Context) (*standing, error) {
		st := &standing{}
		err := s.readFacts(ctx, st)
		if err == nil && st.rolled {
			st.marked, err = s.markedMinutes(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("clickhouse: how far the rollups are: %w", err)
		}
		return st, nil
	})
}

// days are the buckets of all days, sorted by start, read after the standing.
func (s *Store) days(ctx context.Context, m *moment) ([]rollup.Bucket, error) {
	st, err := s.standing(ctx, m)
	if err != nil || !st.rolled {
		return nil, err
	}
	return once(ctx, m, s, "days", func(ctx context.Context) ([]rollup.Bucket, error) {
		days, err := s.buckets(ctx, rollup.Day, nil)
		if err != nil {
			return nil, fmt.Errorf("clickhouse: which days the rollups have: %w", err)
		}
		return days, nil
	})
}

// readFacts reads what one statement tells.
func (s *Store) readFacts(ctx context.Context, st *standing) error {
	const facts = "SELECT (SELECT now64(6, 'UTC')), (SELECT create_table_query FROM system.tables WHERE database = {db:String} AND name = {table:String})"
	var told, waiting uint64
	var lastPassMS int64
	var create string
	table := []any{clickhouse.Named("db", s.database), clickhouse.Named("table", s.local("attempts"))}
	err := s.conn.QueryRow(s.with(ctx, nil), facts+
		", (SELECT count() FROM (SELECT 1 FROM "+s.database+".rollup_overlay_marks GROUP BY kind, provider, name, valid_from, mark HAVING sum(sign) > 0 LIMIT 1))"+
		", countIf(finished_at > now64(3) - toIntervalDay({days:UInt32})), maxIf(toUnixTimestamp64Milli(finished_at), kind = 'pass') FROM "+s.database+".rollup_runs",
		append(table, clickhouse.Named("days", uint32(safeDays)))...).Scan(&st.now, &create, &waiting, &told, &lastPassMS)
	st.rolled = !isUnknownTable(err)
	if !st.rolled {
		err = s.conn.QueryRow(s.with(ctx, nil), facts, table...).Scan(&st.now, &create)
	}
	if err != nil {
		return err
	}
	st.usable = told > 0 && waiting == 0
	if lastPassMS > 0 {
		st.lastPass = time.UnixMilli(lastPassMS).UTC()
	}
	st.retention, err = retentionOf(create)
	return err
}

// markedMinutes are sorted.
func (s *Store) markedMinutes(ctx context.Context) ([]markedMinute, error) {
	rows, err := s.conn.Query(s.with(ctx, nil), "SELECT toInt64(toUnixTimestamp(minute)) * 1000, min(since) FROM"+
		" (SELECT minute, mark, min(marked_at) AS since FROM "+s.database+".rollup_marks GROUP BY minute, mark HAVING sum(sign) > 0) GROUP BY minute ORDER BY minute")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []markedMinute
	for rows.Next() {
		var m markedMinute
		if err := rows.Scan(&m.minute, &m.since); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, rows.Err()
}

// stale are the times whose operations a marked minute may have changed.
func (st *standing) stale() []rollup.Span {
	spans := make([]rollup.Span, len(st.marked))
	for i, m := range st.marked {
		spans[i] = rollup.Span{From: m.minute - startsApart, To: m.minute + minuteMS + startsApart}
	}
	return rollup.Join(spans)
}

// oldest is when the attempts began in Unix milliseconds that are surely there.
func oldest(now time.Time, retention time.Duration) int64 {
	return now.Add(expiryMargin - retention).UnixMilli()
}

// extent is a window as far as there is anything, where there are days: every minute that has
// attempts is in a rollup, or stale.
func extent(days []rollup.Bucket, stale []rollup.Span, from, to time.Time) rollup.Span {
	span := rollup.Span{From: days[0].Start, To: days[len(days)-1].Start + rollup.Day.Width().Milliseconds()}
	if len(stale) > 0 {
		span.From, span.To = min(span.From, stale[0].From), max(span.To, stale[len(stale)-1].To)
	}
	if !from.IsZero() {
		span.From = max(span.From, from.UnixMilli())
	}
	if !to.IsZero() {
		span.To = min(span.To, to.UnixMilli())
	}
	return span
}

// status is what people are told of it.
func (st *standing) status() FinaliserStatus {
	out := FinaliserStatus{DirtyMinutes: uint64(len(st.marked)), LastRunAt: st.lastPass, Usable: st.usable, At: st.now}
	if len(st.marked) > 0 {
		first := slices.MinFunc(st.marked, func(a, b markedMinute) int { return a.since.Compare(b.since) })
		out.Lag = max(0, st.now.Sub(first.since))
	}
	return out
}

// mostRanges is up to how many stretches of time a statement names; of more it reads all that
// lies between the first and the last.
const mostRanges = 16

// buckets are those of a level that begin in the spans, sorted by start; without spans
// all there are.
func (s *Store) buckets(ctx context.Context, l rollup.Level, spans []rollup.Span) ([]rollup.Bucket, error) {
	if len(spans) > mostRanges {
		spans = []rollup.Span{{From: spans[0].From, To: spans[len(spans)-1].To}}
	}
	params := []any{clickhouse.Named("level", levelCode(l))}
	where := ""
	for i, span := range spans {
		where += fmt.Sprintf(" OR bucket >= toDateTime({from%d:Int64}, 'UTC') AND bucket < toDateTime({to%d:Int64}, 'UTC')", i, i)
		params = append(params, clickhouse.Named(fmt.Sprint("from", i), span.From/1000), clickhouse.Named(fmt.Sprint("to", i), span.To/1000))
	}
	if where != "" {
		where = " AND (" + where[len(" OR "):] + ")"
	}
	rows, err := s.conn.Query(s.with(ctx, nil), "SELECT toInt64(toUnixTimestamp(bucket)) * 1000 AS start, max(version), argMax(next_loss_ms, version), argMax(last_loss_ms, version)"+
		" FROM "+s.database+".rollups WHERE level = {level:Int8} AND kind = 'bucket'"+where+" GROUP BY bucket ORDER BY start", params...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []rollup.Bucket
	for rows.Next() {
		var b rollup.Bucket
		if err := rows.Scan(&b.Start, &b.Version, &b.NextLossMS, &b.LastLossMS); err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, rows.Err()
}

// lookup is buckets, those of days of all that there are, others asked once.
func (s *Store) lookup(ctx context.Context, m *moment, days []rollup.Bucket, l rollup.Level, spans []rollup.Span) ([]rollup.Bucket, error) {
	if l != rollup.Day {
		return once(ctx, m, s, fmt.Sprint(l, spans), func(ctx context.Context) ([]rollup.Bucket, error) { return s.buckets(ctx, l, spans) })
	}
	var out []rollup.Bucket
	for _, span := range spans {
		from, _ := slices.BinarySearchFunc(days, span.From, compareStart)
		to, _ := slices.BinarySearchFunc(days, span.To, compareStart)
		out = append(out, days[from:max(from, to)]...)
	}
	return out, nil
}

func compareStart(b rollup.Bucket, at int64) int {
	switch {
	case b.Start < at:
		return -1
	case b.Start > at:
		return 1
	}
	return 0
}
